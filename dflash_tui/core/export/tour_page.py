"""The tour as one page that stands alone: it plays itself, loads nothing, and runs its own script and style alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..figures.labels import AS_FAST, caption
from ..lesson.pages import name_of
from ..lesson.tour import Part, Tour
from ..rounds.cells import END_MARK, draft_text, show_blanks
from ..rounds.playback import PHASES
from .document import ExportedAnswer
from .html import asset, escaped, page_head, variables

GUESSES = 15


def tour_page(tour: Tour) -> str:
    """The page as text; write it as UTF-8."""
    style, script = variables() + asset("tour.css"), asset("tour.js")
    pictures = {"alone": _alone, "weights": _weights, "round": _round, "race": _race, "number": _number}
    parts = [
        *page_head("Speculative decoding in two minutes", style, script),
        '<header><progress id="progress" max="1" value="0" aria-label="How much has been played"></progress>',
        '<button id="play" type="button">pause</button></header><main>',
        *(_part(part, "".join(pictures[part.name](tour))) for part in tour.parts),
        f'</main><script type="application/json" id="data">{_data(tour)}</script>',
        f"<script>{script}</script></body></html>\n",
    ]
    return "\n".join(parts)


def _part(part: Part, picture: str) -> str:
    return (
        f'<section id="{part.name}"><h1>{escaped(part.title)}</h1><div class="picture">{picture}</div>'
        f"<p>{escaped(part.words)}</p></section>"
    )


def _alone(tour: Tour) -> Iterator[str]:
    yield f'<pre class="answer plain">{"".join(_tokens(tour.alone))}</pre>'


def _tokens(answer: ExportedAnswer) -> Iterator[str]:
    for index, step in enumerate(answer.steps):
        for token in step.emitted:
            if token.channel != "control" and token.text:
                yield f'<span class="t {token.verdict}" data-s="{index}">{escaped(token.text)}</span>'


def _weights(tour: Tour) -> Iterator[str]:
    for what, took, boxes in (
        ("one token", tour.one_ms, 1),
        ("one token and fifteen guesses", tour.block_ms, 1 + GUESSES),
    ):
        yield (
            f'<div class="pass"><p><b>a pass for {what}</b> <output>{took:.1f} ms</output></p>'
            '<progress max="1" value="1" aria-label="Weights read"></progress>'
            f'<p class="note">all the weights, read once</p><p class="boxes">{"<i></i>" * boxes}</p></div>'
        )


def _round(tour: Tour) -> Iterator[str]:
    yield '<ol class="cells">'
    for column in tour.round.columns:
        if column.draft is None:
            continue
        fate = "rejected" if column.outcome == "rejected" else column.outcome
        choice = column.choice
        own = ""
        if choice is not None and choice.verdict == "corrected":
            text = END_MARK if choice.channel == "control" else show_blanks(choice.text)
            own = f'<span class="own">{escaped(text)}</span>'
        guess = escaped(show_blanks(draft_text(column.draft)))
        yield f'<li class="{fate}"><span class="guess">{guess}</span>{own}</li>'
    step = tour.round.step
    captions = "".join(f"<span>{escaped(caption(phase, step))}</span>" for phase in PHASES[1:])
    yield f'</ol><p class="captions">{captions}</p>'


def _race(tour: Tour) -> Iterator[str]:
    for place, answer in enumerate((tour.alone, tour.drafted)):
        yield (
            f'<div class="lane lane-{place}"><p><b>{escaped(name_of(answer))}</b> <output></output></p>'
            '<progress max="1" value="1" aria-label="Tokens written"></progress></div>'
        )


def _number(tour: Tour) -> Iterator[str]:
    yield f'<p class="factor">{tour.factor:.1f}×</p><p><b>{AS_FAST}</b></p>'


def _data(tour: Tour) -> str:
    """What the script knows, as JSON: the seconds of each part, and of each answer when its rounds ended, and how many
    tokens and passes of the target it had by then. ``<`` never stands in it, so that nothing ends the element."""
    lanes = [_lane(answer) for answer in (tour.alone, tour.drafted)]
    data: dict[str, Any] = {"seconds": [part.seconds for part in tour.parts], "lanes": lanes}
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _lane(answer: ExportedAnswer) -> list[list[float]]:
    tokens, passes, first, rounds = 0, 0, answer.steps[0].time, list[list[float]]()
    for step in answer.steps:
        tokens += len(step.emitted)
        passes += step.verify_width > 0
        rounds.append([step.time - first, tokens, passes])
    return rounds
