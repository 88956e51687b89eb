"""Passes of models as blocks in rows, each as long as it takes: why DFlash pays off, in one picture. The first screen,
the race, lesson, tour and exported pages draw the same one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

Ink = Literal["name", "draft", "target", "waiting", "gap"]
"""What a piece of a drawn line is: ``waiting`` is a pass that has not ended yet."""
InkedLine = tuple[tuple[str, Ink], ...]
MOST_CELLS = 6
"""Cells of a pass of length 1 at most, the blank behind it included."""
UNLABELLED, ROUNDING = "■", 1e-9


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of a model over its weights."""

    kind: Literal["draft", "target"]
    labels: tuple[str, ...]
    """What is written into it, the longest first; the first that has room is taken."""
    length: float = 1.0
    """How long it takes, in passes of the picture's first kind."""


@dataclass(frozen=True, slots=True)
class PassRow:
    name: str
    brief: str
    """The name where there is little room."""
    passes: tuple[Pass, ...]

    @property
    def ends(self) -> tuple[float, ...]:
        """When each pass ends, the first one beginning at 0."""
        return tuple(accumulate(each.length for each in self.passes))


@dataclass(frozen=True, slots=True)
class PassRows:
    """Rows of passes that begin together, on one clock."""

    rows: tuple[PassRow, ...]
    says: str
    """What the picture shows, in words."""

    @property
    def length(self) -> float:
        return max(row.ends[-1] for row in self.rows)

    def text(self, width: int) -> str:
        return "\n".join("".join(text for text, _ in line) for line in self.lines(width, wall="|"))

    def lines(self, width: int, share: float = 1.0, wall: str = " ") -> list[InkedLine]:
        """A line for each row, when ``share`` of the time, in [0, 1], has passed; ``wall`` stands between passes."""
        names = [row.name for row in self.rows]
        room = width - max(map(len, names)) - 2
        if room < 3 * self.length:
            names = [row.brief for row in self.rows]
            room = width - max(map(len, names)) - 2
        column = max(map(len, names)) + 2
        unit = min(max(int(room / self.length), 2), MOST_CELLS)
        now = share * self.length
        return [
            ((f"{name:<{column}}", "name"), *_blocks(row, unit, now, wall))
            for name, row in zip(names, self.rows, strict=True)
        ]


def _blocks(row: PassRow, unit: int, now: float, wall: str) -> InkedLine:
    pieces: list[tuple[str, Ink]] = [(wall.strip(), "gap")]
    ends = [round(end * unit) for end in row.ends]
    rooms = [max(end - begin - 1, 1) for begin, end in zip([0, *ends], ends, strict=False)]
    labels = [_label(each, room) for each, room in zip(row.passes, rooms, strict=True)]
    bare = {each.kind for each, label in zip(row.passes, labels, strict=True) if label == UNLABELLED}
    for each, end, room, label in zip(row.passes, row.ends, rooms, labels, strict=True):
        text = f"{UNLABELLED if each.kind in bare else label:^{room}}"
        pieces += [(text, each.kind if end <= now + ROUNDING else "waiting"), (wall, "gap")]
    return tuple(pieces)


def _label(each: Pass, room: int) -> str:
    return next((label for label in each.labels if len(label) <= room), UNLABELLED)


CHECK = Pass("target", ("check all 15", "check 15", "check", "✓"), 3.0)
"""The target's pass; it takes about three of the drafter's in every bundled recording, on a processor as on an H200."""
REASON = PassRows(
    (
        PassRow("an ordinary drafter", "one by one", (*(Pass("draft", (str(n),)) for n in range(1, 16)), CHECK)),
        PassRow("DFlash", "DFlash", (Pass("draft", ("1–15", "all", "15")), CHECK)),
    ),
    "An ordinary drafter needs a pass for each guess, one behind the other. DFlash guesses all fifteen in one pass. "
    "Then the target checks them, all at once, in one pass of its own.",
)
"""Why DFlash: an ordinary drafter's fifteen passes beside DFlash's one, each drawn equally long."""
