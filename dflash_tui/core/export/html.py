"""HTML: one page that stands alone, with every token's facts on hover or focus and a scrubber over the rounds. All text
is escaped, and a content security policy runs this page's own script and style by their hashes, and loads nothing."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import count
from typing import Any

from engine.events import Clock, EmittedToken, Step

from ..conversation.turn import Turn
from ..figures.labels import (
    ABOUT,
    AS_FAST,
    COLOURS,
    KEPT,
    OUTCOME,
    SERVERS,
    TOKENS_PER_ROUND,
    UNCHECKED,
    UNDER_TOKENS,
    Label,
)
from ..figures.statistics import CLOCKS, NOT_KNOWN
from ..rounds.cells import round_cells, round_summary, show_blanks
from ..rounds.inspection import Inspection, inspect_step
from ..rounds.pace import pace_words, race_pace, replay_pace
from ..rounds.passes import REASON, PassRows
from ..rounds.trees import accepted_drafts
from ..text.counted import counted, ms_text
from ..text.harmless import sanitise
from .document import (
    SET_LINE,
    CellTable,
    ExportedPage,
    Heading,
    Lanes,
    Plain,
    Prose,
    RoundFigure,
    is_set,
)
from .palette import DARK, LIGHT, PLAIN_COLOURS, HexColours, bundled_palette
from .spans import answer_summary

_BUTTONS = (
    ("reject-back", "«", "round before with a correction: {"),
    ("back", "‹", "round before: ,"),
    ("next", "›", "next round: ."),
    ("reject-next", "»", "next round with a correction: }"),
)
LAST_COLOUR = 4
"""The last lane with a colour of its own; those behind it share that."""
_WORD = re.compile(r"\S+")
BAR_PITCH, BAR_WIDTH, CHART_HEIGHT = 14, 10, 48
PASSES_WIDTH, PASS_HEIGHT, PASS_GAP, LETTER = 1080, 42, 6, 15


def to_html(document: ExportedPage) -> str:
    """The page as text; write it as UTF-8."""
    style, script = _variables() + _asset("page.css"), _asset("page.js")
    title = escaped(document.title)
    parts = [
        *_page_head(title, style, script),
        f'<header><h1>{title}</h1><p class="origin">{escaped(document.origin.describe())}</p>{_legend(document)}',
        '<p class="only-js"><button id="theme" type="button">Light or dark</button></p></header><main>',
        *_sections(document),
        '</main><div id="card" role="tooltip" hidden></div>',
        f'<script type="application/json" id="data">{_data(document)}</script>',
        f"<script>{script}</script></body></html>\n",
    ]
    return "\n".join(parts)


def _sections(document: ExportedPage) -> Iterator[str]:
    numbers = count()
    for section in document.sections:
        if isinstance(section, Lanes):
            yield from _lanes(section, numbers)
        else:
            yield _section(section, numbers)


def _lanes(lanes: Lanes, numbers: Iterator[int]) -> Iterator[str]:
    """A bar for each lane, all on one clock that runs at a pace that can be followed, then what they write."""
    pace = race_pace(max((answer.decode_seconds for answer in lanes.answers), default=0.0))
    most = max((answer.num_tokens for answer in lanes.answers), default=0)
    numbered = [(next(numbers), answer) for answer in lanes.answers]
    yield f'<section class="race">{_winner(lanes)}<ol class="tracks">'
    for index, (number, answer) in enumerate(numbered):
        yield (
            f'<li class="lane-{min(index, LAST_COLOUR)}" data-track="{number}"><span class="label">'
            f'{escaped(answer.name)}</span><progress max="{max(most, 1)}" value="{max(most, 1)}" '
            f'aria-label="Tokens written"></progress><output>{answer.decode_seconds:.2f} s</output></li>'
        )
    yield (
        f'</ol><div class="scrub only-js"><button type="button" class="play" data-go="race" data-pace="{pace!r}">'
        f'▶ play the race</button><input type="range" min="0" max="1000" value="1000" aria-label="Seconds">'
        f'<span class="pace">{pace_words(pace)}</span></div><div class="lanes">'
    )
    for index, (number, answer) in enumerate(numbered):
        yield (
            f'<article class="lane-{min(index, LAST_COLOUR)}" data-answer="{number}">'
            f'<p class="label">{escaped(answer.name)}</p>{_written(answer)}'
            f'<details><summary>round by round</summary><p class="summary">{escaped(answer_summary(answer))}</p>'
            f"{_histogram(answer)}{_scrubber(answer)}</details></article>"
        )
    yield f"</div></section>{_passes_figure(REASON)}"


def _winner(lanes: Lanes) -> str:
    """The number that the page is about: how many times as fast as the first lane the fastest was, per token."""
    if not lanes.best:
        return ""
    first, best = lanes.answers[0], lanes.answers[lanes.best]
    number, what = "no difference", "to"
    if lanes.times is not None:
        number, what = f"{lanes.times.times:.1f}×", f"{'about, ' * lanes.times.about}as fast as"
    return (
        f'<p class="winner lane-{min(lanes.best, LAST_COLOUR)}"><strong>{number}</strong> '
        f"<span>{what} <b>{escaped(first.name)}</b>: <b>{escaped(best.name)}</b></span></p>"
    )


def _section(section: Plain, numbers: Iterator[int]) -> str:
    match section:
        case Heading():
            return f"<h2>{escaped(section.text)}</h2>"
        case Prose():
            return "".join(_paragraph(text) for text in section.text.split("\n\n") if text.strip())
        case CellTable():
            return _table(section)
        case RoundFigure():
            return _round(section)
        case PassRows():
            return _passes_figure(section)
        case Turn():
            return _answer(section, next(numbers))


def _paragraph(text: str) -> str:
    if not is_set(text):
        return f"<p>{escaped(text)}</p>"
    lines = "\n".join(line.removeprefix(SET_LINE) for line in text.split("\n"))
    return f'<pre class="wide">{escaped(lines)}</pre>'


def _answer(answer: Turn, number: int) -> str:
    label = f'<p class="label">{escaped(answer.name)}</p>' if answer.name else ""
    return (
        f'<article data-answer="{number}">{label}<p class="question">{escaped(answer.question)}</p>'
        f'{_gain(answer)}<p class="summary">{escaped(answer_summary(answer))}</p>{_scrubber(answer)}'
        f"{_written(answer)}{_histogram(answer)}</article>"
    )


def _gain(answer: Turn) -> str:
    """What drafting gave, in one large number: how many times as fast, or where that is not known, tokens a round."""
    facts = answer.statistics
    if not facts.num_spec_steps:
        return ""
    passes = answer.rounds.num_passes
    behind = counted(max(facts.num_tokens - 1, 0), "token")
    text = f"{behind} after the first in {counted(passes, 'pass')} of the target; alone it needs one each"
    if answer.speed_up is None:
        number, what = f"{facts.tokens_per_round:.1f}", TOKENS_PER_ROUND.name
    else:
        number, what = f"{answer.speed_up.times:.1f}×", f"{AS_FAST}{answer.speed_up.remark}"
    return f'<p class="winner lane-1"><strong>{number}</strong> <span><b>{what}</b><br>{text}</span></p>'


def _written(answer: Turn) -> str:
    error = f'<p class="error">{escaped(answer.failure.message)}</p>' if answer.failure is not None else ""
    return f'<div class="text" role="group" aria-label="Answer">{"".join(_tokens(answer.rounds))}</div>{error}'


def _tokens(steps: Iterable[Step]) -> Iterator[str]:
    first = True
    for index, step in enumerate(steps):
        for token_index, token in enumerate(step.emitted):
            if token.text and token.channel != "control":
                yield _token(token, index, token_index, first)
                first = False


def _token(token: EmittedToken, step: int, index: int, first: bool) -> str:
    look: str = "thought" if token.channel == "thought" else token.verdict
    # One stop for the Tab key per answer; the arrow keys move on from there.
    stop = 0 if first else -1
    text = escaped(token.text)
    if look == "corrected":  # words are underlined, as in the terminal, and not the blanks before them
        text = _WORD.sub(r"<u>\g<0></u>", text)
    return f'<span class="t {look}" tabindex="{stop}" data-s="{step}" data-k="{index}">{text}</span>'


def _scrubber(answer: Turn) -> str:
    if not answer.rounds:
        return ""
    last, pace = len(answer.rounds) - 1, replay_pace(answer.decode_seconds)
    buttons = {
        go: f'<button type="button" data-go="{go}" title="{title}">{sign}</button>' for go, sign, title in _BUTTONS
    }
    play = f'<button type="button" class="play" data-go="play" data-pace="{pace!r}">▶ play it</button>'
    return (
        f'<div class="scrub only-js">{play}{buttons["reject-back"]}{buttons["back"]}'
        f'<input type="range" min="0" max="{last}" value="{last}" aria-label="Round">'
        f'{buttons["next"]}{buttons["reject-next"]}<span class="pace">{pace_words(pace)}</span>'
        '<output aria-live="polite"></output></div><div class="round only-js"></div>'
    )


def _round(figure: RoundFigure) -> str:
    cells = "".join(
        f'<span class="cell"><span class="{cell.fate}">{escape(show_blanks(cell.text))}</span>'
        f"<small>{'' if cell.probability is None else f'{cell.probability:.3f}'}</small></span>"
        for cell in round_cells(figure.step)
    )
    caption = escaped(figure.caption or round_summary(figure.step))
    return f'<figure><div class="round">{cells}</div><figcaption>{caption}</figcaption></figure>'


def _passes_figure(passes: PassRows) -> str:
    """Rows of passes that begin together: blocks as wide as they take, each with the share of the time at its end."""
    rows = []
    for row in passes.rows:
        begins, blocks = (0.0, *row.ends), []
        for each, begin, end in zip(row.passes, begins, row.ends, strict=False):
            left, right = (time / passes.length * PASSES_WIDTH for time in (begin, end))
            label = next((label for label in each.labels if len(label) * LETTER < right - left), each.labels[-1])
            blocks.append(
                f'<g class="{each.kind}" data-end="{end / passes.length:.4f}">'
                f'<rect x="{left:.1f}" width="{right - left - PASS_GAP:.1f}" height="{PASS_HEIGHT}"/>'
                f'<text x="{(left + right - PASS_GAP) / 2:.1f}" y="{PASS_HEIGHT * 2 // 3}">{escaped(label)}'
                "</text></g>"
            )
        rows.append(
            f'<p><b>{escaped(row.name)}</b></p><svg viewBox="0 0 {PASSES_WIDTH} {PASS_HEIGHT}" '
            f'aria-hidden="true">{"".join(blocks)}</svg>'
        )
    return f'<figure class="passes">{"".join(rows)}<figcaption>{escaped(passes.says)}</figcaption></figure>'


def _table(table: CellTable) -> str:
    head, *body = table.rows
    rows = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>" for row in body)
    heads = "".join(f"<th>{escaped(cell)}</th>" for cell in head)
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def _histogram(answer: Turn) -> str:
    counts = answer.statistics.acceptance_histogram
    if not counts:
        return ""
    top, width = max(counts), len(counts) * BAR_PITCH
    bars = "".join(
        f'<rect x="{index * BAR_PITCH}" y="{CHART_HEIGHT - height}" width="{BAR_WIDTH}" height="{height}">'
        f"<title>{counted(count, 'round')} kept {index}</title></rect>"
        for index, count in enumerate(counts)
        if (height := round(count / top * CHART_HEIGHT))
    )
    return (
        f'<figure class="histogram"><svg viewBox="0 0 {width} {CHART_HEIGHT}" width="{width}" height="{CHART_HEIGHT}" '
        f'role="img" aria-label="accepted per round: {", ".join(map(str, counts))}">{bars}</svg>'
        f"<figcaption>{KEPT.name}, 0 to {len(counts) - 1}: {KEPT.says}</figcaption></figure>"
    )


def _legend(document: ExportedPage) -> str:
    known: list[tuple[str, Label]] = [*(COLOURS | UNCHECKED).items()]
    if document.origin.server:
        known += SERVERS.items()
    names = [f'<span class="{look}">{label.name}</span>' for look, label in known]
    entries = "".join(f"<li>{name} {label.says}</li>" for name, (_, label) in zip(names, known, strict=True))
    entries += f"<li>{escaped(UNDER_TOKENS)}</li><li>{escaped(OUTCOME.says)}</li>"
    shut = any(isinstance(section, Lanes) for section in document.sections)  # a race is to be seen whole
    reason, opened = ("", "") if shut else (_passes_figure(REASON), " open")
    return (
        f'<p class="about">{escaped(ABOUT)}</p>{reason}<details id="legend"{opened}>'
        f'<summary>{" ".join(names)}</summary><ul class="legend">{entries}</ul></details>'
    )


def _data(document: ExportedPage) -> str:
    """What the script knows about every answer's rounds. ``<`` never stands in it, so that nothing ends the element."""
    rounds = [list(_rounds(answer, document.origin.times)) for answer in document.answers]
    return json.dumps(rounds, separators=(",", ":")).replace("<", "\\u003c")


def _rounds(answer: Turn, times: Clock) -> Iterator[dict[str, Any]]:
    known, first = answer.settings.get("seed"), 0
    seed = known if isinstance(known, int) else None
    for step in answer.rounds:
        inspection = inspect_step(step, first, answer.num_prompt_tokens + first, seed)
        yield {
            "time": step.time,
            "summary": f"round {step.index}: {inspection.summary}",
            "cost": _cost(step, times),
            "corrected": any(token.verdict == "corrected" for token in step.emitted),
            "cells": [[show_blanks(cell.text), cell.fate, cell.probability] for cell in round_cells(step)],
            "tokens": [_token_facts(inspection, index) for index in range(len(step.emitted))],
        }
        first += len(step.emitted)


def _cost(step: Step, times: Clock) -> str:
    total = step.total_ms
    whole = f"{ms_text(total, total)} ms in all{CLOCKS[times]}"
    if step.verify_ms == 0:  # the prompt's token
        return whole
    if step.draft_ms is None or step.verify_ms is None:
        return f"guess and check {NOT_KNOWN}, {whole}"
    return f"guess {ms_text(step.draft_ms, total)} + check {ms_text(step.verify_ms, total)} ms, {whole}"


def _token_facts(inspection: Inspection, index: int) -> list[Any]:
    """Text, verdict, the target's probability, the drafter's, the random number that chose, and why."""
    step, column = inspection.step, inspection.columns[index]
    token = step.emitted[index]
    drafted = accepted_drafts(step)[index].probability if index < step.num_accepted else None
    chance = None if column.noise is None else round(column.noise, 4)
    why = f"{inspection.why(index)} {inspection.choices(index)}".rstrip()
    return [show_blanks(token.text), token.verdict, token.probability, drafted, chance, sanitise(why)]


def escaped(text: str) -> str:
    """A text for a page: nothing in it is markup, and nothing moves a cursor or turns the direction of writing."""
    return escape(sanitise(text))


def _variables() -> str:
    """The palettes as custom properties: the reader's system decides between them, or the page's button."""
    dark, light = (_properties(bundled_palette(name)) for name in (DARK, LIGHT))
    return (
        f":root{{{dark}}}\n:root[data-theme=light]{{{light}}}\n"
        f"@media (prefers-color-scheme: light){{:root:not([data-theme=dark]){{{light}}}}}\n"
    )


def _properties(palette: HexColours) -> str:
    colors = {name: getattr(palette, name) for name in PLAIN_COLOURS} | dict(palette.verdicts)
    scheme = "dark" if palette is bundled_palette(DARK) else "light"
    return "".join(f"--{name}:{color};" for name, color in colors.items()) + f"color-scheme:{scheme};"


def _page_head(title: str, style: str, script: str) -> tuple[str, ...]:
    """What a page begins with, up to its body. A policy lets it run its own style and script, and load nothing."""
    own = f"style-src {_content_hash(style)}; script-src {_content_hash(script)}"
    policy = f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{style}</style></head><body>",
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _content_hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
