"""The newest block of an answer stands on a ground for a moment, so that one sees how much came at once."""

from __future__ import annotations

from collections.abc import Callable

from textual.timer import Timer
from textual.widget import Widget

from ...options import options_of

SECONDS = 0.3
MOST = 400
"""Characters of a block at most: more at once is an answer that was brought back, and none that was just written."""
LANDED = {look: f"landed-{look}" for look in ("accepted", "corrected", "bonus")}
"""Looks that have a ground. What the target wrote alone has none: nothing was guessed."""


class Landing:
    """Where the newest block begins, for as long as it is new."""

    def __init__(self, widget: Widget, over: Callable[[int], None]) -> None:
        """``over`` is told from which character on nothing is new any more."""
        self.start: int | None = None
        """Its first character, of all that are there."""
        self._widget = widget
        self._over = over
        self._timer: Timer | None = None

    def begin(self, start: int, stop: int) -> int:
        """Characters from ``start`` to ``stop`` are new. Returns from where on to draw again."""
        before, self.start = self.start, None
        if 0 < stop - start <= MOST and not options_of(self._widget).reduced_motion:
            self.start = start
            if self._timer is not None:
                self._timer.stop()
            self._timer = self._widget.set_timer(SECONDS, self._end)
        return start if before is None else min(before, start)

    def reaches(self, stop: int) -> bool:
        """Whether text that ends behind character ``stop`` holds something new."""
        return self.start is not None and stop > self.start

    def look(self, look: str, start: int, new: bool = False) -> str:
        """How a token looks that begins with character ``start``, or is of a round on show, which is ``new``, too."""
        new |= self.start is not None and start >= self.start
        return LANDED.get(look, look) if new else look

    def forget(self) -> None:
        """What was new is gone, or looked at otherwise."""
        self.start = None

    def _end(self) -> None:
        start, self.start = self.start, None
        if start is not None:
            self._over(start)
