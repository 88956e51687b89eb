"""A race on one clock: how far every lane had come so many seconds after its first token, at a pace one can follow."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.events import Step

from ..rounds.pace import race_pace
from .race import LaneResult, RaceResult


@dataclass(slots=True)
class LaneClock:
    """One lane, as far as it has come. Counts go on from the frame before, whatever the length of the answer."""

    lane: LaneResult
    seconds: float = 0.0
    tokens: int = 0
    target_passes: int = 0
    _steps: tuple[Step, ...] = field(init=False)
    _shown: int = 0

    def __post_init__(self) -> None:
        self._steps = self.lane.shown.steps

    def advance(self, seconds: float) -> list[Step]:
        """Go on to ``seconds`` after the first token; returns the rounds that ended since the call before."""
        steps, begun = self._steps, self._shown
        while not self.over and steps[self._shown].time - steps[0].time <= seconds:
            self.tokens += len(steps[self._shown].emitted)
            self.target_passes += steps[self._shown].verify_width > 0
            self._shown += 1
        self.seconds = min(seconds, steps[-1].time - steps[0].time) if steps else 0.0
        return list(steps[begun : self._shown])

    @property
    def over(self) -> bool:
        return self._shown == len(self._steps)


class RaceClock:
    """Replays a race. Time runs forward only."""

    def __init__(self, result: RaceResult) -> None:
        self.result = result
        self.lanes = tuple(LaneClock(lane) for lane in result.lanes)
        self.length = result.seconds
        """Seconds until the slowest lane is done."""
        self.most_tokens = max((lane.num_tokens for lane in result.lanes), default=0)
        """Tokens of the longest answer, at which a bar is full."""
        self.seconds = 0.0
        """Seconds of the race that have passed, not of whoever watches it."""
        self.pace = race_pace(self.length)
        """Seconds of the race in a second of the viewer's."""
        self.playing = False
        self._seen = 0.0

    def advance(self, seconds: float) -> list[list[Step]]:
        """Go to ``seconds`` after the first token; returns the rounds of each lane that ended since the call before."""
        self.seconds = min(seconds, self.length)
        return [lane.advance(seconds) for lane in self.lanes]

    def play(self, now: float) -> None:
        """Let the race run on from ``now``, the viewer's clock in seconds."""
        self.playing, self._seen = True, now

    def tick(self, now: float) -> list[list[Step]]:
        """Go on, as :meth:`advance` does, by the time that has passed for the viewer."""
        passed, self._seen = (now - self._seen) * self.pace if self.playing else 0.0, now
        return self.advance(self.seconds + passed)

    @property
    def over(self) -> bool:
        return all(lane.over for lane in self.lanes)
