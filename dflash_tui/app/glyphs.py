"""Pictures made of characters: bars, sparklines and large digits; and lines that find room."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

EIGHTHS = " ▁▂▃▄▅▆▇█"

_DIGITS = {
    "0": ("#####", "## ##", "## ##", "## ##", "## ##", "#####"),
    "1": (" ### ", "  ## ", "  ## ", "  ## ", "  ## ", " ####"),
    "2": ("#####", "   ##", "#####", "##   ", "##   ", "#####"),
    "3": ("#####", "   ##", " ####", "   ##", "   ##", "#####"),
    "4": ("## ##", "## ##", "#####", "   ##", "   ##", "   ##"),
    "5": ("#####", "##   ", "#####", "   ##", "   ##", "#####"),
    "6": ("#####", "##   ", "#####", "## ##", "## ##", "#####"),
    "7": ("#####", "   ##", "   ##", "  ## ", "  ## ", "  ## "),
    "8": ("#####", "## ##", "#####", "## ##", "## ##", "#####"),
    "9": ("#####", "## ##", "#####", "   ##", "   ##", "#####"),
    ".": ("  ", "  ", "  ", "  ", "##", "##"),
    " ": ("  ", "  ", "  ", "  ", "  ", "  "),
    "–": ("    ", "    ", "####", "    ", "    ", "    "),
    "×": ("     ", "     ", "## ##", " ### ", "## ##", "     "),
}
"""Digits as six rows of pixels (``#``), of which two above each other make one cell of the screen."""
_HALVES = {"  ": " ", "# ": "▀", " #": "▄", "##": "█"}


_ASCII_DIGITS = {
    "0": (" _ ", "| |", "|_|"),
    "1": ("   ", "  |", "  |"),
    "2": (" _ ", " _|", "|_ "),
    "3": (" _ ", " _|", " _|"),
    "4": ("   ", "|_|", "  |"),
    "5": (" _ ", "|_ ", " _|"),
    "6": (" _ ", "|_ ", "|_|"),
    "7": (" _ ", "  |", "  |"),
    "8": (" _ ", "|_|", "|_|"),
    "9": (" _ ", "|_|", " _|"),
    ".": (" ", " ", "."),
    " ": (" ", " ", " "),
    "–": ("   ", " _ ", "   "),
    "×": ("   ", r"\ /", r"/ \\"),
}
"""Digits for an ASCII screen, three rows each, drawn as a pocket calculator does."""


def large_number(text: str, ascii: bool = False, scale: int = 1) -> tuple[str, ...]:
    """Three rows, or ``scale`` times as many, that show ``text`` in solid letters: digits, a point, a cross, a dash."""
    if ascii:
        return tuple("".join(row) for row in zip(*(_ASCII_DIGITS[character] for character in text), strict=True))
    pixels = [" ".join(row) for row in zip(*(_DIGITS[character] for character in text), strict=True)]
    pixels = ["".join(pixel * scale for pixel in row) for row in pixels for _ in range(scale)]
    pairs = zip(pixels[::2], pixels[1::2], strict=True)
    return tuple("".join(_HALVES[over + under] for over, under in zip(*pair, strict=True)) for pair in pairs)


def bars(values: Sequence[float], height: int) -> list[str]:
    """One column per value in [0, 1], ``height`` rows, top row first. Anything above zero shows at least a sliver."""
    steps = [max(1, round(value * height * 8)) if value > 0 else 0 for value in values]
    return ["".join(EIGHTHS[min(max(step - 8 * level, 0), 8)] for step in steps) for level in reversed(range(height))]


def fitting(hints: Sequence[str], width: int, brief: Sequence[str] = ()) -> str:
    """A line of as many hints as have room in ``width`` cells: the last one, and before it the first ones. ``brief``
    are the same in fewer words, for where not all have room."""
    *first, last = brief if brief and cell_len(" · ".join(hints)) > width else hints
    while first and cell_len(" · ".join([*first, last])) > width:
        first.pop()
    return " · ".join([*first, last])


def scaled(values: Sequence[float]) -> list[float]:
    """Values divided by their maximum."""
    top = max(values, default=0.0)
    return [value / top for value in values] if top > 0 else [0.0] * len(values)


def spaced(row: str, pitch: int) -> str:
    """The characters of ``row``, one every ``pitch`` cells: ``spaced("ab", 3)`` gives ``"a  b"``."""
    return (" " * (pitch - 1)).join(row)


def axis(labels: dict[int, str], count: int, pitch: int) -> str:
    """The line below a chart of ``count`` columns, ``pitch`` cells apart: ``labels`` by the column they start at."""
    cells = [" "] * (count * pitch + 2)
    for column, label in labels.items():
        start = column * pitch
        cells[start : start + len(label)] = label
    return "".join(cells).rstrip()
