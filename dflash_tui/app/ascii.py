"""The screen in ASCII: each drawn character replaced by one that every terminal and font has, on finished lines, behind
the widgets. A model's letters stay, and saved or copied text never changes."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_GLYPHS = {
    "─╌┄–—−╶╴": "-", "│┃╎┆▏▕╷╵": "|", "┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝╒╕": "+", "━═": "=", "║": "|",
    "▁": "_", "▂": ".", "▃": ":", "▄": "-", "▅": "=", "▆": "+", "▇": "*", "█": "#", "▉▊▋▌▍▎": "|",
    "░": ".", "▒": ":", "▓": "%", "▔▀": "^", "▖▗▘▙▚▛▜▝▞▟": "+",
    "·•∙": ".", "…": ".", "●■▪◼▣": "*", "◉": "@", "○◌□": "o", "❯›▶▸▹►⮞»": ">", "‹◀◂«": "<", "▲△": "^", "▼▽": "v",
    "↑⇑": "^", "↓⇓": "v", "←⇐": "<", "→⇒⇥↦": ">", "↺↻⟳": "@", "⏎↵␤": "$", "␣": "_", "∅": "0",
    "✓✔": "v", "✗✘✕×": "x", "✻✱": "*", "✂": "%", "✎": "*", "␍␊": "~", "ˋ": "'",
    "⏹": "#", "⏸": "=", "⏵": ">", "±": "~", "°": "'",
    "“”„": '"', "‘’‚": "'", "τ": "t", "⅘": "~", "¼½¾": "~", "≤": "<", "≥": ">", "≈": "~", "\N{NO-BREAK SPACE}": " ",
}  # fmt: skip
ASCII = str.maketrans({glyph: plain for glyphs, plain in _GLYPHS.items() for glyph in glyphs})
"""The one table: each glyph and a character of the same width."""


class AsciiFilter(LineFilter):
    """Replaces, in each line that is about to be drawn, characters that are not ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [_translated(segment) for segment in segments]


def _translated(segment: Segment) -> Segment:
    text, style, control = segment
    return segment if control or text.isascii() else Segment(text.translate(ASCII), style)
