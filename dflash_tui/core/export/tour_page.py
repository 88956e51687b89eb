"""The tour as one page that stands alone: it plays itself, loads nothing, and runs its own script and style alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..conversation.turn import Turn
from ..figures.labels import AS_FAST, caption
from ..lesson.course import Course, Factor, OneRound, Page, SideBySide, Written, name_of
from ..rounds.cells import END_MARK, draft_text, show_blanks
from ..rounds.passes import PassRows
from ..rounds.playback import PHASES
from .html import asset, escaped, page_head, passes_figure, variables

KINDS = {Written: "alone", PassRows: "passes", OneRound: "round", SideBySide: "race", Factor: "number"}


def tour_page(course: Course) -> str:
    """A course that plays itself, as the text of a page; write it as UTF-8."""
    style, script = variables() + asset("tour.css") + asset("passes.css"), asset("tour.js")
    parts = [
        *page_head(course.title, style, script),
        '<header><progress id="progress" max="1" value="0" aria-label="How much has been played"></progress>',
        '<button id="play" type="button">pause</button></header><main>',
        *map(_section, course.pages),
        f'</main><script type="application/json" id="data">{_data(course)}</script>',
        f"<script>{script}</script></body></html>\n",
    ]
    return "\n".join(parts)


def _section(page: Page) -> str:
    kind = KINDS[type(page.view)] if page.view else "words"
    words = f"<p>{escaped(page.text)}</p>" if not isinstance(page.view, PassRows) else ""  # its caption says the same
    return (
        f'<section class="{kind}"><h1>{escaped(page.title)}</h1><div class="picture">{"".join(_picture(page))}</div>'
        f"{words}</section>"
    )


def _picture(page: Page) -> Iterator[str]:
    match page.view:
        case Written(answer):
            yield f'<pre class="answer plain">{"".join(_tokens(answer))}</pre>'
        case PassRows() as passes:
            yield passes_figure(passes)
        case OneRound() as view:
            yield from _round(view)
        case SideBySide(answers):
            yield from _race(answers)
        case Factor(times):
            yield f'<p class="factor">{times:.1f}×</p><p><b>{AS_FAST}</b></p>'


def _tokens(answer: Turn) -> Iterator[str]:
    for index, step in enumerate(answer.rounds):
        for token in step.emitted:
            if token.channel != "control" and token.text:
                yield f'<span class="t {token.verdict}" data-s="{index}">{escaped(token.text)}</span>'


def _round(view: OneRound) -> Iterator[str]:
    inspection = view.inspection()
    yield '<ol class="cells">'
    for column in inspection.columns:
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
    step = inspection.step
    captions = "".join(f"<span>{escaped(caption(phase, step))}</span>" for phase in PHASES[1:])
    yield f'</ol><p class="captions">{captions}</p>'


def _race(answers: tuple[Turn, ...]) -> Iterator[str]:
    for index, answer in enumerate(answers):
        yield (
            f'<div class="lane lane-{index}"><p><b>{escaped(name_of(answer))}</b> <output></output></p>'
            '<progress max="1" value="1" aria-label="Tokens written"></progress></div>'
        )


def _data(course: Course) -> str:
    """What the script knows, as JSON: the seconds of each page, and of each answer of the race when its rounds ended,
    and how many tokens and passes of the target it had by then. ``<`` never stands in it, so that nothing ends the
    element."""
    raced = (page.view.answers for page in course.pages if isinstance(page.view, SideBySide))
    lanes = [_lane(answer) for answer in next(raced, ())]
    data: dict[str, Any] = {"seconds": [page.seconds for page in course.pages], "lanes": lanes}
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _lane(answer: Turn) -> list[list[float]]:
    tokens, passes, first, rounds = 0, 0, answer.rounds[0].time, list[list[float]]()
    for step in answer.rounds:
        tokens += len(step.emitted)
        passes += step.verify_width > 0
        rounds.append([step.time - first, tokens, passes])
    return rounds
