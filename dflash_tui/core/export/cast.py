"""asciicast v2, the answers as they arrived: https://docs.asciinema.org/manual/asciicast/v2/"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime

from ..text.harmless import sanitise
from ..text.spans import Span, TokenStyle
from .document import ExportedAnswer, ExportedPage
from .palette import DARK, HexColours, bundled_palette
from .spans import answer_summary, gap_after, question_spans, section_spans, token_spans

COLUMNS, ROWS = 100, 30
PAUSE = 1.0
"""Seconds that every section but a running answer stays alone on the screen."""
_ATTRIBUTES: dict[TokenStyle, str] = {
    "prompt": "1",
    "corrected": "1;4",
    "bonus": "1",
    "plain": "3",
    "thought": "3",
    "error": "1",
    "unknown": "4",
}


def to_cast(document: ExportedPage) -> str:
    """A header, then one line per round: seconds since the beginning, ``o``, and what the terminal gets."""
    header = {
        "version": 2,
        "width": COLUMNS,
        "height": ROWS,
        "title": document.title,
        "env": {"TERM": "xterm-256color"},
        **_timestamp(document.origin.created),
    }
    events = ([round(seconds, 6), "o", text] for seconds, text in _played(document) if text)
    return "".join(json.dumps(line) + "\n" for line in (header, *events))


def _timestamp(created: str) -> dict[str, int]:
    try:
        return {"timestamp": int(datetime.fromisoformat(created).timestamp())}
    except ValueError:
        return {}


def _played(document: ExportedPage) -> Iterator[tuple[float, str]]:
    palette = bundled_palette(DARK)
    now = 0.0
    for section in document.one_by_one:
        if isinstance(section, ExportedAnswer):
            yield now, _drawn(question_spans(section), palette)
            now += PAUSE
            for step in section.steps:
                yield now + step.time, _drawn(token_spans([step]), palette)
            now += section.steps[-1].time if section.steps else 0.0
            yield now, _drawn([Span(f"{gap_after(section)}{answer_summary(section)}\n\n", "note")], palette)
        else:
            yield now, _drawn(section_spans(section), palette)
        now += PAUSE
    yield now, _drawn([Span(f"{document.origin.describe()}\n", "note")], palette)


def _drawn(spans: Iterable[Span], palette: HexColours) -> str:
    return "".join(_escape(span, palette) for span in spans)


def _escape(span: Span, palette: HexColours) -> str:
    """The text with nothing of its own that a terminal would act on, between this program's own colours."""
    red, green, blue = bytes.fromhex(palette.of(span.style).lstrip("#"))
    attributes = _ATTRIBUTES.get(span.style, "")
    code = f"{attributes};" if attributes else ""
    text = sanitise(span.text).replace("\n", "\r\n")
    return f"\x1b[{code}38;2;{red};{green};{blue}m{text}\x1b[0m"
