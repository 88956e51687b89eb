"""A conversation as something to play: its rounds in blocks, its other events between them. Whatever is in its file,
nothing can make this program wait for ever or take more memory than a long conversation does."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.events import EngineReady, Event, TurnStarted
from engine.rounds.blocks import decoded
from engine.rounds.numbers import SECOND, RecordError
from engine.rounds.rows import MAX_LIST
from engine.rounds.store import RoundStore

from ..conversation.step_spans import StepSpans
from ..conversation.turn import Turn
from ..failures import Failure
from ..sessions.checked_events import RecordedEvent
from ..sessions.sessions import Conversation, load_session
from ..source import StepBatch
from ..text.counted import counted
from ..text.spans import SpanStore

MAX_SECONDS = 48 * 3600.0
"""The most seconds of all turns together: gauges keep a history that is even in time."""

HOW = "Every conversation is a recording, and dflash-chat --trace FILE makes one more."


class RecordingError(Failure):
    """Raised for a file that can't be replayed at all."""


@dataclass(frozen=True, slots=True)
class EventMark:
    """An event other than a step, and how many steps of the recording came before it."""

    steps_before: int
    event: RecordedEvent


class Recording:
    """The path of a conversation, to be played."""

    def __init__(self, conversation: Conversation) -> None:
        self.name = conversation.path.name
        self.created = conversation.created
        self.program = conversation.program
        self.steps = RoundStore()
        """The steps of all turns, one after the other."""
        self.spans = SpanStore()
        """What the steps add to the transcript."""
        self.marks: list[EventMark] = []
        self.problem: str | None = None
        """What of the file is not here, in words for people; None when it is whole."""
        self._seconds_left = MAX_SECONDS
        self.turns = tuple(turn for turn in conversation.turns if turn.started is not None)
        """The turns that began, to be shown as a whole."""
        turns = [turn for turn in conversation.turns if turn.begun]
        damaged = conversation.damaged
        by: EngineReady | None = None
        for turn in turns:
            answers = turn.by or (conversation.ready if by is None else None)
            if answers is not None and answers != by:
                self._mark(by := answers)
            damaged += not self._add(turn)
        if damaged:
            self.problem = f"Of {self.name} {counted(damaged, 'line')} could not be read."
        elif turns and turns[-1].reason is None:
            self.problem = f"{self.name} ends within an answer. This is everything up to there."

    def _mark(self, event: RecordedEvent) -> None:
        self.marks.append(EventMark(len(self.steps), event))

    def _add(self, turn: Turn) -> bool:
        """Add a turn's events; False where rounds of it are damaged, so that it ends with those before them."""
        whole = True
        for opened in turn.opening:
            self._mark(opened)
        if turn.started is not None:
            try:
                self._add_rounds(turn)
            except RecordError:
                whole = False
        for closed in turn.closing:
            self._mark(closed)
        return whole

    def _add_rounds(self, turn: Turn) -> None:
        spans, seconds = StepSpans(turn.number), 0.0
        turn.store.seal(rest=True)
        for data in turn.store.blocks:
            block = decoded(data)
            steps = list(block.steps())
            for step in steps:
                self._seconds_left -= max(step.time - seconds, 0.0)
                seconds = step.time
                most = max(len(step.draft), len(step.tree))
                if most > MAX_LIST or step.num_accepted > len(step.draft) or self._seconds_left < 0:
                    raise RecordError("no program writes such a round")
            self.steps.adopt(data, block, steps)
            for step in steps:
                self.spans.append(spans.tell(step))

    @property
    def ready(self) -> EngineReady | None:
        return next((mark.event for mark in self.marks if isinstance(mark.event, EngineReady)), None)

    @property
    def seconds(self) -> float:
        """Seconds from the first token to the last, of all turns together."""
        starts = (mark.event.turn for mark in self.marks if isinstance(mark.event, TurnStarted))
        turns = (steps for steps in map(self.steps_of_turn, starts) if steps)
        return sum((self.steps.time[steps[-1]] - self.steps.time[steps[0]]) / SECOND for steps in turns)

    def __len__(self) -> int:
        """Events in all."""
        return len(self.marks) + len(self.steps)

    def events(self, start: int = 0) -> Iterator[Event]:
        """The events in order, from number ``start`` on."""
        mark = self._marks_within(start)
        step = start - mark
        steps = self.steps.steps(step)
        for _ in range(start, len(self)):
            if mark < len(self.marks) and self.marks[mark].steps_before == step:
                yield self.marks[mark].event
                mark += 1
            else:
                yield next(steps)
                step += 1

    def happenings(self, start: int, stop: int) -> Iterator[Event | StepBatch]:
        """The events from number ``start`` to before ``stop``, steps in batches. Decodes nothing."""
        turn = first = step = 0
        for index, mark in enumerate(self.marks):
            yield from self._batch(turn, first, max(step, start - index), min(mark.steps_before, stop - index))
            if start <= mark.steps_before + index < stop:
                yield mark.event
            step = mark.steps_before
            if isinstance(mark.event, TurnStarted):
                turn, first = mark.event.turn, step
        index = len(self.marks)
        yield from self._batch(turn, first, max(step, start - index), min(len(self.steps), stop - index))

    def _batch(self, turn: int, first: int, start: int, stop: int) -> Iterator[StepBatch]:
        if start < stop:
            yield StepBatch(turn, self.steps, first, start, stop, self.spans.between(start, stop, turn))

    def steps_of_turn(self, turn: int) -> range:
        """Which steps of the recording are a turn's; none when it has no step."""
        starts = [(mark.steps_before, mark.event.turn) for mark in self.marks if isinstance(mark.event, TurnStarted)]
        ends = [*(start for start, _ in starts[1:]), len(self.steps)]
        ranges = (range(start, end) for (start, number), end in zip(starts, ends, strict=False) if number == turn)
        return next((steps for steps in ranges if steps), range(0))

    def number_of_step(self, step: int) -> int:
        """Which event of the recording its step number ``step`` is."""
        return step + bisect_right(self.marks, step, key=lambda mark: mark.steps_before)

    def _marks_within(self, count: int) -> int:
        """How many of the first ``count`` events are marks."""
        places = range(len(self.marks))
        return bisect_left(places, count, key=lambda index: self.marks[index].steps_before + index)


def read_recording(path: Path) -> Recording:
    """Read a file. Raises :class:`RecordingError` when nothing in it can be replayed, and ``OSError``."""
    try:
        recording = Recording(load_session(path))
    except ValueError as error:
        raise RecordingError(str(error), HOW) from None
    if not recording.marks:
        raise RecordingError(f"There is nothing to replay in {path.name}.", "Record another: dflash-chat --trace FILE")
    return recording
