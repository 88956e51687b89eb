"""A recording that plays in the place of an engine, and jumps in it."""

from __future__ import annotations

from collections.abc import Callable

from dflash_tui.core.replay.replay_source import FASTEST, SLOWEST
from dflash_tui.core.rounds.travel import Position
from dflash_tui.core.source import PlayedRecord


class Replay:
    """Plays and seeks a recording; every method does nothing where the source is none."""

    def __init__(self, recording: PlayedRecord | None, frame: Callable[[], None]) -> None:
        """``frame`` is called after a jump, to draw at once what the recording then told."""
        self.recording, self._frame = recording, frame

    def num_rounds(self, turn: int) -> int:
        """How many rounds of a turn were recorded; 0 when nobody knows."""
        return len(self.recording.steps_of_turn(turn)) if self.recording is not None else 0

    def toggle(self) -> None:
        """Pause or go on, from the start again when all is told."""
        if self.recording is None:
            return
        if self.recording.ended:
            self._go(1)
            self.recording.set_playing(True)
        else:
            self.recording.set_playing(not self.recording.playing)

    def pause(self) -> None:
        if self.recording is not None:
            self.recording.set_playing(False)

    def play_from(self, position: Position) -> None:
        """Take back what came after a round, and play on from there."""
        if self.recording is not None:
            self.recording.seek_round(position.turn, position.step)
            self.recording.set_playing(True)
            self._frame()

    def reach(self, turn: int, index: int) -> None:
        """Play the recording up to round ``index`` of turn ``turn``, if that is still to come."""
        recording = self.recording
        if recording is not None and recording.steps_of_turn(turn)[: max(index, 0) + 1].stop > recording.played:
            recording.seek_round(turn, index)
            self._frame()

    def advance(self) -> None:
        """Play one more round."""
        if self.recording is not None:
            self._go(self.recording.played + 1)

    @property
    def can_leap(self) -> bool:
        """Whether the recording's length is known, so that one can leap in it."""
        return self.recording is not None and self.recording.length is not None

    def leap(self, tenths: float) -> None:
        """Go so many tenths of the trace on or back: to its first round, or its last, where that would be beyond."""
        if self.recording is not None and self.recording.length is not None:
            target = self.recording.played + tenths * max(self.recording.length // 10, 1)
            self._go(int(min(max(target, 1), self.recording.length)))

    def change_pace(self, factor: float) -> None:
        if self.recording is not None:
            self.recording.set_pace(min(max(self.recording.pace * factor, SLOWEST), FASTEST))

    def _go(self, played: int) -> None:
        if self.recording is not None:
            self.recording.seek(played)
            self._frame()
