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
"""The looks of a new token by its usual look. What the target wrote alone has none: nothing was guessed."""


class Landing:
    """Knows where the newest block of the answer begins, for as long as it is new."""

    def __init__(self, widget: Widget, over: Callable[[int], None]) -> None:
        """``over`` is called when the block is no longer new, with the place of its first character."""
        self.start: int | None = None
        """The place of its first character in the transcript; None when nothing is new."""
        self._widget = widget
        self._over = over
        self._timer: Timer | None = None

    def begin(self, start: int, stop: int) -> int:
        """Take the characters from ``start`` to ``stop`` as new. Returns the character from which to draw again."""
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
        """The look of a token whose usual one is ``look``, which begins with character ``start``; ``new`` has it taken
        as new."""
        new |= self.start is not None and start >= self.start
        return LANDED.get(look, look) if new else look

    def forget(self) -> None:
        """Let nothing be new any more: it is gone, or shown in another way."""
        self.start = None

    def _end(self) -> None:
        start, self.start = self.start, None
        if start is not None:
            self._over(start)
