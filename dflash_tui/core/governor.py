"""How often to draw a frame, so that the screen never takes more than its share from the engine beside it."""

from __future__ import annotations

FASTEST, SLOWEST = 1 / 30, 1 / 8
"""Seconds between frames."""
SMOOTHING = 0.2
"""Weight of the newest frame in the running mean of a frame's cost."""


class FrameGovernor:
    """Stretches the frame interval until the UI thread keeps to its share of the wall clock, by its measured processor
    time per frame. On a CPU the engine wants the same lock and cores."""

    def __init__(self, share: float) -> None:
        """``share``: the part of the wall clock the screen may use, in (0, 1]."""
        self.share = share
        # Begin slow: an answer may last a second, and the screen should not take its share of that twice.
        self._cost = share * SLOWEST

    def observe(self, cpu_seconds: float) -> None:
        """Take note of the CPU seconds that the thread spent since the frame before."""
        self._cost += SMOOTHING * (cpu_seconds - self._cost)

    @property
    def interval(self) -> float:
        """Seconds to wait before the next frame."""
        return min(max(self._cost / self.share, FASTEST), SLOWEST)
