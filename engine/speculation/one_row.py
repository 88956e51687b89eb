"""When to take a pass of one row within an answer, beside its rounds: what the target alone would take is then known
where it is said, under the same load and behind the same text. Standard library only."""

from __future__ import annotations

SOON, EVERY, FIRST, FIRST_EVERY = 4, 32, 8, 10
"""Rounds with a draft from one pass of one row to the next: at the beginning of an answer, and in it. The ``FIRST`` of
a session come sooner: before them little can be said. A pass takes about half of a round's time, so they take some 1.5
percent. They are counted, not timed: those that came due by the time that rounds took would stand beside slow ones."""
TOLD_EVERY = 8
"""One round in so many tells, where costs are known without a pass."""


class OneRowPasses:
    """Says when the next pass of one row is due. Has no clock."""

    def __init__(self) -> None:
        self._taken, self._left = 0, SOON

    def begin(self) -> None:
        """Begins an answer."""
        self._left = min(self._left, SOON)

    @property
    def due(self) -> bool:
        return self._left <= 0

    def count(self, *, drafted: bool, passed: bool) -> None:
        """Counts a round: whether it had a draft, and whether a pass of one row was taken beside it. A round without a
        draft is itself such a pass."""
        if passed or not drafted:
            self._taken += 1
            self._left = EVERY if self._taken > FIRST else FIRST_EVERY
        else:
            self._left -= 1
