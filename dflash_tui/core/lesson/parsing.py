"""Reads a lesson file (``FORMAT.md`` beside this module). Every complaint names file and line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

FigureKind = Literal["answer", "round", "memory", "copy", "experts", "histogram", "race", "times"]
OF_A_ROUND: tuple[FigureKind, ...] = ("round", "memory")
MAX_BYTES = 1_000_000
_FENCE = "---"
_DIRECTIVE = re.compile(r"@(?P<name>[\w-]+)\s*(?P<rest>.*)")
_TURNS: dict[FigureKind, tuple[int, int]] = {
    "answer": (1, 1),
    "round": (1, 1),
    "memory": (1, 1),
    "copy": (1, 1),
    "experts": (3, 3),
    "histogram": (1, 3),
    "race": (2, 3),
    "times": (1, 3),
}
"""Fewest and most turns that a figure takes; of ``experts`` the numbers that it draws."""
EXPERTS_WANTED = (
    "@figure experts takes three numbers: how many a layer has (up to 1024), how many a token goes through, and up to "
    "how many tokens (64 at most) a pass checks."
)
ROUND_WORDS = ("first", "best", "worst", "bonus", "rejection")


class LessonError(Exception):
    """A lesson that can't be shown: which file and line, and what is wrong there."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}, line {line}: {message}" if line else f"{path}: {message}")


@dataclass(frozen=True, slots=True)
class RoundChoice:
    """Which round of a turn a figure shows."""

    word: str = "first"
    """One of ``ROUND_WORDS``; with ``rejection``, ``number`` counts from 1."""
    number: int = 0
    """The round's own number when ``word`` is empty."""


@dataclass(frozen=True, slots=True)
class FigureRequest:
    kind: FigureKind
    turns: tuple[int, ...]
    """Turns of the trace, counted from 1."""
    choice: RoundChoice
    line: int


@dataclass(frozen=True, slots=True)
class TextLine:
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class LessonStop:
    """One page of the lesson."""

    title: str
    lines: tuple[TextLine, ...]
    figure: FigureRequest | None


@dataclass(frozen=True, slots=True)
class Lesson:
    path: Path
    title: str
    trace: str
    """A bundled trace's name, or a file beside the lesson's."""
    stops: tuple[LessonStop, ...]


def read_lesson(path: Path) -> Lesson:
    """Read a lesson from a file. Raises :class:`LessonError` when it can't be read or doesn't keep to the format."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise LessonError(path, 0, f"longer than {MAX_BYTES:,} bytes, which no lesson is.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise LessonError(path, 0, f"it can't be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise LessonError(path, 0, f"it is not UTF-8 text (byte {error.start}).") from None
    return parse_lesson(path, text)


def parse_lesson(path: Path, text: str) -> Lesson:
    """See :func:`read_lesson`."""
    lines = [TextLine(number, line.rstrip()) for number, line in enumerate(text.split("\n"), start=1)]
    head, body = _split(path, lines)
    fields = _fields(path, head)
    stops = tuple(_stops(path, body))
    if not stops:
        raise LessonError(path, lines[-1].number, "there is no stop; one begins with a line such as: # A title")
    return Lesson(path, fields["title"], fields["trace"], stops)


def _split(path: Path, lines: list[TextLine]) -> tuple[list[TextLine], list[TextLine]]:
    """The lines between the first two fences of a lesson's file, and the lines behind them."""
    fences = [place for place, line in enumerate(lines) if line.text == _FENCE][:2]
    if len(fences) < 2 or any(line.text for line in lines[: fences[0]]):
        raise LessonError(path, 1, f"a lesson begins with {_FENCE}, title: and trace: lines, and {_FENCE} again.")
    return lines[fences[0] + 1 : fences[1]], lines[fences[1] + 1 :]


def _fields(path: Path, head: list[TextLine]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in head:
        name, colon, value = (part.strip() for part in line.text.partition(":"))
        if not line.text:
            continue
        if not colon or name not in ("title", "trace") or not value:
            raise LessonError(path, line.number, f"here stand title: and trace: only, not {line.text!r}.")
        fields[name] = value
    for name in ("title", "trace"):
        if name not in fields:
            raise LessonError(path, 1, f"{name}: is missing between the first two {_FENCE} lines.")
    return fields


def _stops(path: Path, body: list[TextLine]) -> list[LessonStop]:
    stops: list[LessonStop] = []
    for line in _without_comments(path, body):
        if line.text.startswith("# "):
            stops.append(LessonStop(line.text.removeprefix("# ").strip(), (), None))
        elif not stops:
            if line.text:
                raise LessonError(path, line.number, "text stands before the first stop; # begins one.")
        else:
            stops[-1] = _continued(path, stops[-1], line)
    return stops


def _without_comments(path: Path, body: list[TextLine]) -> list[TextLine]:
    """The lines of ``body`` without those from ``<!--`` to ``-->``."""
    kept: list[TextLine] = []
    opened = 0
    for line in body:
        if not opened and line.text.startswith("<!--"):
            opened = line.number
        if not opened:
            kept.append(line)
        if opened and line.text.endswith("-->"):
            opened = 0
    if opened:
        raise LessonError(path, opened, "this comment has no end; --> is missing.")
    return kept


def _continued(path: Path, stop: LessonStop, line: TextLine) -> LessonStop:
    directive = _DIRECTIVE.fullmatch(line.text)
    if directive is None:
        return LessonStop(stop.title, (*stop.lines, line), stop.figure)
    if directive["name"] != "figure":
        raise LessonError(path, line.number, f"there is no @{directive['name']}, only @figure.")
    if stop.figure is not None:
        raise LessonError(path, line.number, f"this stop has a figure already, on line {stop.figure.line}.")
    return LessonStop(stop.title, stop.lines, _figure(path, line.number, directive["rest"].split()))


def _figure(path: Path, line: int, words: list[str]) -> FigureRequest:
    kinds: tuple[FigureKind, ...] = get_args(FigureKind)
    kind = next((each for each in kinds if words and each == words[0]), None)
    if kind is None:
        raise LessonError(path, line, f"after @figure comes {', '.join(kinds[:-1])} or {kinds[-1]}.")
    numbers: list[int] = []
    rest = words[1:]
    least, most = _TURNS[kind]
    while rest and rest[0].isdecimal() and len(numbers) < most:
        numbers.append(int(rest.pop(0)))
    if kind == "experts" and not _drawable(numbers):
        raise LessonError(path, line, EXPERTS_WANTED)
    if len(numbers) < least or 0 in numbers:
        raise LessonError(path, line, f"@figure {kind} takes the numbers of {least} to {most} turns, counted from 1.")
    return FigureRequest(kind, tuple(numbers), _choice(path, line, kind, rest), line)


def _drawable(numbers: list[int]) -> bool:
    return len(numbers) == 3 and 0 < numbers[1] <= numbers[0] <= 1024 and 0 < numbers[2] <= 64


def _choice(path: Path, line: int, kind: FigureKind, words: list[str]) -> RoundChoice:
    match words:
        case []:
            return RoundChoice()
        case [word] if kind in OF_A_ROUND and word.isdecimal():
            return RoundChoice("", int(word))
        case [word] if kind in OF_A_ROUND and word in ROUND_WORDS:
            return RoundChoice(word, 1)
        case ["rejection", number] if kind in OF_A_ROUND and number.isdecimal() and int(number):
            return RoundChoice("rejection", int(number))
    known = f"a round's number, {', '.join(ROUND_WORDS)}, or rejection 2" if kind in OF_A_ROUND else "nothing more"
    raise LessonError(path, line, f"{' '.join(words)!r}: behind the turn comes {known}.")
