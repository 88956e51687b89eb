"""A recording in the place of the engine: the same events, at the pace they once came or at another. No torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

from engine.commands import Close, Command, Stop
from engine.events import EngineError, Event, PrefillDone, Step, TurnStarted
from engine.rounds.numbers import SECOND

from ..rounds.pace import replay_pace
from ..source import ASKING, Capabilities, Emit, Rewind, described
from .recording import Recording, RecordingError, read_recording

SLOWEST, FASTEST = 1e-4, 1000.0
"""Paces, as multiples of the recorded one. The fastest is as fast as the screen takes it."""
PAUSE = 0.7
"""Seconds between the end of one turn and the next question, at any pace."""
BURST, BURST_SECONDS = 256, 1 / 60
"""The most events in so many seconds, at any pace: whoever draws them must not fall behind."""


NO_MODEL = "This is a replay: no model is loaded, and nothing can be asked. A chat: dflash-chat"
PLACEHOLDER = "A replay takes no questions; / commands work, F1 helps."


class ReplaySource:
    """A source that is its own recording: nothing can be asked, ``Stop`` pauses. Its thread reads and hands out events;
    every method may be called from any other."""

    capabilities = Capabilities(dict.fromkeys(ASKING, NO_MODEL), local=False, placeholder=PLACEHOLDER)

    def __init__(self, path: Path, emit: Emit, pace: float | None = None) -> None:
        """``pace`` None is the recorded one, or slower where all would be over before anybody saw it."""
        self.path = path
        self.name = path.name
        self.record: Recording | None = None
        """The recording; None until it has been read."""
        self.pace = 1.0 if pace is None else pace
        """Times the recorded pace. Change it with :meth:`set_pace`."""
        self._suit = pace is None
        self.played = 0
        """Steps handed out so far."""
        self.playing = True
        self._emit = emit
        self._position = 0
        """Events handed out so far."""
        self._ahead: Iterator[Event] = iter(())
        self._next: Event | None = None
        """The event to hand out next; None before the recording has been read, and at its end."""
        self._clock, self._since = 0.0, 0.0
        """What the turn's clock showed, in seconds, when it was last set; and when that was."""
        self._reported_at = 0.0
        """When the latest event was due, in seconds of the turn's clock."""
        self._wanted: int | None = None
        """How many rounds to have played once the recording has been read; None to play from the start."""
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._main, name="replay", daemon=True)

    @property
    def recording(self) -> ReplaySource:
        return self

    @property
    def length(self) -> int | None:
        """Steps in all; None before the recording has been read."""
        return None if self.record is None else len(self.record.steps)

    @property
    def origin(self) -> str:
        if self.record is None:
            return ""
        made, ready = self.record.created[:10], self.record.ready
        what = described(ready.banner).partition(" (")[0] if ready else ""
        where = f"on {ready.device}" if ready and ready.device else ""
        return " · ".join(filter(None, (f"{what} {where}".strip(), f"recorded {made}" if made else "")))

    @property
    def ended(self) -> bool:
        """Whether everything was handed out."""
        return self.record is not None and self._position >= len(self.record)

    def start(self) -> None:
        self._thread.start()

    def send(self, command: Command) -> None:
        match command:
            case Stop():
                self.set_playing(False)
            case Close():
                with self._changed:
                    self._closed = True
                    self._changed.notify()

    def join(self, timeout: float | None = None) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def set_playing(self, playing: bool) -> None:
        """Go on, or pause after the step that was handed out last."""
        with self._changed:
            self._set_clock(self._time())
            self.playing = playing
            self._changed.notify()

    def set_pace(self, pace: float) -> None:
        """Set the pace, as a multiple of the recorded one. Raises ``ValueError``, in words for people, out of range."""
        if not SLOWEST <= pace <= FASTEST:
            raise ValueError(f"The pace must be between {SLOWEST} and {FASTEST:.0f}, not {pace}")
        with self._changed:
            self._set_clock(self._time())
            self.pace = pace
            self._changed.notify()

    def seek(self, played: int) -> None:
        """Go to where ``played`` steps are out, and play on from there. What that takes has been handed out when this
        returns: :class:`StepBatch` for steps on the way, after a :class:`Rewind` when it is a way back. Who wants the
        last step wants what comes after it as well; before the recording has been read the wish is kept."""
        with self._changed:
            if self.record is None:
                self._wanted = played
            else:
                self._go(self.record, min(max(played, 0), len(self.record.steps)))
                self._changed.notify()

    def seek_round(self, turn: int, index: int) -> None:
        """Go to where round ``index`` of a turn, or the nearest that it has, is the last that is out."""
        steps = self.steps_of_turn(turn)
        if steps:
            self.seek(steps[min(max(index, 0), len(steps) - 1)] + 1)

    def steps_of_turn(self, turn: int) -> range:
        """Which steps of the recording are a turn's, those that are still to come included."""
        return self.record.steps_of_turn(turn) if self.record is not None else range(0)

    def _go(self, recording: Recording, played: int) -> None:
        position = recording.number_of_step(played - 1) + 1 if played else 0
        if played == len(recording.steps):
            position = len(recording)
        if position < self._position:
            self._emit(Rewind())
            self._position = 0
        for happening in recording.happenings(self._position, position):
            self._emit(happening)
        self.played = played
        self._stand(recording, position)
        self._reported_at = recording.steps.time[played - 1] / SECOND if played else 0.0
        self._set_clock(self._reported_at)

    def _stand(self, recording: Recording, position: int) -> None:
        """Hand out event number ``position`` next."""
        self._position = position
        self._ahead = recording.events(position)
        self._next = next(self._ahead, None)

    def _main(self) -> None:
        try:
            recording = read_recording(self.path)
        except RecordingError as error:
            self._emit(EngineError("usage", str(error), error.hint, fatal=True))
        except OSError as error:
            message = f"{self.path} can't be read: {error.strerror}."
            self._emit(EngineError("usage", message, "Choose another file.", fatal=True))
        else:
            self._begin(recording)
            self._play()

    def _begin(self, recording: Recording) -> None:
        with self._changed:
            self.record = recording
            if self._suit:
                self.pace = max(replay_pace(recording.seconds), SLOWEST)
            self._stand(recording, 0)
            self._set_clock(0.0)
        if self._wanted is not None:
            self.seek(self._wanted)

    def _play(self) -> None:
        count = 0
        while self._hand_out():
            count += 1
            if count % BURST == 0 and not self._rest():
                return

    def _hand_out(self) -> bool:
        """Wait for the next event and hand it out; False when the replay was closed meanwhile."""
        with self._changed:
            while not self._closed:
                event, left = self._next, None
                if event is not None and self.playing:
                    left = (self._due(event) - self._time()) / self.pace
                    if left <= 0:
                        self._take(event)
                        return True
                self._changed.wait(left)
            return False

    def _take(self, event: Event) -> None:
        self._reported_at = self._due(event)
        if isinstance(event, TurnStarted):
            self._reported_at = 0.0
            self._set_clock(0.0)
        self.played += isinstance(event, Step)
        self._next = next(self._ahead, None)
        if isinstance(event, TurnStarted) and self._next is not None and self.pace < 1:
            # Nothing shows while a prompt is read: slowed, that would be an empty screen for seconds.
            self._set_clock(max(self._due(self._next) - PAUSE * self.pace, 0.0))
        self._emit(event)
        self._position += 1

    def _due(self, event: Event) -> float:
        """The second at which an event comes, on the clock of its turn; a question, on that of the turn before."""
        match event:
            case TurnStarted():
                return self._reported_at + PAUSE * self.pace
            case PrefillDone():
                return event.milliseconds / 1000
            case Step():
                return event.time
        return self._reported_at

    def _rest(self) -> bool:
        with self._changed:
            return not self._changed.wait_for(lambda: self._closed, BURST_SECONDS)

    def _time(self) -> float:
        passed = time.monotonic() - self._since if self.playing else 0.0
        return self._clock + passed * self.pace

    def _set_clock(self, value: float) -> None:
        self._clock, self._since = value, time.monotonic()
