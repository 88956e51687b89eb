"""SVG: the answers as the terminal shows them, on a grid of cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from ..figures.labels import COLOURS
from ..text.harmless import sanitise
from ..text.spans import TOKEN_STYLES, Span, TokenStyle
from ..text.wrapping import Document as Grid
from ..text.wrapping import width_of
from .document import ExportedPage
from .palette import DARK, bundled_palette
from .spans import document_spans

COLUMNS = 100
CELL_WIDTH, CELL_HEIGHT, FONT_SIZE = 8.4, 18, 14
MARGIN, BASELINE = 16, 13
MAX_ROWS = 5000
"""A picture of more rows is of no use; the other formats have no such limit."""
LEGEND_ROWS = 2
_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_STYLES: dict[TokenStyle, str] = {
    "prompt": "font-weight:bold",
    "corrected": "font-weight:bold",
    "bonus": "font-weight:bold",
    "plain": "font-style:italic",
    "thought": "font-style:italic",
    "error": "font-weight:bold",
    "unknown": "text-decoration:underline dotted",
}
_WORD = re.compile(r"\S+")
_UNDERLINED = "tspan{text-decoration:underline}"
"""The style of corrected words, which are underlined as in the terminal, and not the blanks between them."""


def to_svg(document: ExportedPage) -> str:
    """One picture with a dark background. Its text can be selected; nothing is loaded from elsewhere."""
    palette = bundled_palette(DARK)
    grid = Grid(COLUMNS)
    grid.append(list(document_spans(document)))
    rows = grid.rows[:MAX_ROWS]
    width = round(COLUMNS * CELL_WIDTH) + 2 * MARGIN
    height = (len(rows) + LEGEND_ROWS) * CELL_HEIGHT + 2 * MARGIN
    styles = "".join(f".{style}{{fill:{palette.of(style)};{_STYLES.get(style, '')}}}" for style in TOKEN_STYLES)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">',
        f"<title>{_safe(sanitise(document.title))}</title>",
        f"<style>text{{font-family:{_FONT};font-size:{FONT_SIZE}px;white-space:pre}}{styles}{_UNDERLINED}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{palette.background}"/>',
    ]
    for number, row in enumerate(rows):
        lines += _row(grid.spans(row), MARGIN + number * CELL_HEIGHT + BASELINE)
    lines += _row(list(_legend()), MARGIN + (len(rows) + 1) * CELL_HEIGHT + BASELINE)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _legend() -> Iterator[Span]:
    """The pieces of the line that says what the colours of the answer's tokens mean."""
    for look in ("accepted", "corrected", "bonus", "plain"):
        label = COLOURS[look]
        yield Span(label.name, look)
        yield Span("  ", "note")


def _row(spans: list[Span], y: int) -> Iterator[str]:
    """A text element per span, stretched to its cells: columns stay aligned whatever the font."""
    column = 0
    for span in spans:
        cells = width_of(span.text)
        if span.text.strip():
            x, length = MARGIN + column * CELL_WIDTH, cells * CELL_WIDTH
            yield (
                f'<text class="{span.style}" x="{x:.1f}" y="{y}" textLength="{length:.1f}" '
                f'lengthAdjust="spacingAndGlyphs">{_content(span)}</text>'
            )
        column += cells


def _content(span: Span) -> str:
    if not span.style.endswith("corrected"):
        return _safe(span.text)
    return _WORD.sub(lambda word: f"<tspan>{_safe(word[0])}</tspan>", span.text)


def _safe(text: str) -> str:
    """A text for XML, which has no place for U+FFFE and U+FFFF."""
    return escape(text.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd"))
