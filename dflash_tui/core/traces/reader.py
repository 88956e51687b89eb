"""Reads traces, whatever is in the file: a trace that was cut short or damaged is read up to there, and nothing in a
file can make this program wait for ever or take more memory than a long conversation does."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from engine.events import EngineError, EngineReady, Event, Step, TurnFinished, TurnStarted
from engine.rounds.statistics import TurnMeter

from ..conversation.step_spans import StepSpans
from ..failures import Failure
from ..records.blocks import decoded
from ..records.numbers import SECOND, RecordError
from ..records.rows import MAX_LIST
from ..rounds.history import StepHistory
from ..source import StepBatch
from ..text.spans import SpanStore
from .checked_events import checked_event, one_line
from .format import FORMAT_VERSION, MAGIC, JsonEvent, TraceHeader
from .frames import DAMAGED, TOO_LONG, Damage, FrameReader, damaged

MAX_STEPS, MAX_TOKENS, MAX_DRAFTED, MAX_EVENTS = 2**17, 2**20, 2**21, 10_000
MAX_TEXT = 8 * 2**20
"""Characters of all answers together."""
MAX_SECONDS = 48 * 3600.0
"""The most seconds of all turns together: gauges keep a history that is even in time."""


class TraceError(Failure):
    """Raised for a file that can't be replayed at all."""


@dataclass(frozen=True, slots=True)
class EventMark:
    """An event other than a step, and how many steps of the trace came before it."""

    steps_before: int
    event: JsonEvent


class Trace:
    """A trace in memory: its steps in blocks, its other events between them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.header = TraceHeader()
        self.steps = StepHistory()
        """The steps of all turns, one after the other."""
        self.spans = SpanStore()
        """What the steps add to the transcript."""
        self.marks: list[EventMark] = []
        self.ending: list[Event] = []
        """What a replay says when all events are told: a file that was cut short lacks the end of its turn."""
        self.problem: str | None = None
        """What is wrong with the file's end, in words for people; None when it is whole."""

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
        for place, mark in enumerate(self.marks):
            yield from self._batch(turn, first, max(step, start - place), min(mark.steps_before, stop - place))
            if start <= mark.steps_before + place < stop:
                yield mark.event
            step = mark.steps_before
            if isinstance(mark.event, TurnStarted):
                turn, first = mark.event.turn, step
        place = len(self.marks)
        yield from self._batch(turn, first, max(step, start - place), min(len(self.steps), stop - place))

    def _batch(self, turn: int, first: int, start: int, stop: int) -> Iterator[StepBatch]:
        if start < stop:
            yield StepBatch(turn, self.steps, first, start, stop, self.spans.between(start, stop, turn))

    def steps_of_turn(self, turn: int) -> range:
        """Which steps of the trace are a turn's; none when it has no step."""
        starts = [(mark.steps_before, mark.event.turn) for mark in self.marks if isinstance(mark.event, TurnStarted)]
        ends = [*(start for start, _ in starts[1:]), len(self.steps)]
        found = (range(start, end) for (start, number), end in zip(starts, ends, strict=False) if number == turn)
        return next((steps for steps in found if steps), range(0))

    def number_of_step(self, step: int) -> int:
        """Which event of the trace its step number ``step`` is."""
        return step + bisect_right(self.marks, step, key=lambda mark: mark.steps_before)

    def _marks_within(self, count: int) -> int:
        """How many of the first ``count`` events are marks."""
        places = range(len(self.marks))
        return bisect_left(places, count, key=lambda place: self.marks[place].steps_before + place)


def read_trace(path: Path) -> Trace:
    """Read a file. Raises :class:`TraceError` when nothing in it can be replayed, and ``OSError``."""
    with path.open("rb") as file:
        return read_stream(file, path.name)


def read_stream(file: BufferedIOBase, name: str) -> Trace:
    """Read a trace from where ``file`` stands. Raises :class:`TraceError` when nothing in it can be replayed."""
    check_version(file, name)
    reader = _TraceReader(Trace(name))
    try:
        for content in FrameReader(file).contents():
            reader.take(content)
    except Damage as damage:
        reader.end(f"{damage}, after {reader.progress}. This is everything up to there.")
    else:
        reader.end(None)
    if not reader.trace.marks:
        raise TraceError(f"There is nothing to replay in {name}.", "Record another: dflash-chat --trace FILE")
    return reader.trace


def check_version(file: BufferedIOBase, name: str) -> None:
    """Reads the first line. Raises :class:`TraceError` unless it begins a trace that this program reads."""
    line = file.readline(len(MAGIC) + 12)
    number = line.removeprefix(MAGIC).strip()
    if not line.startswith(MAGIC) or not number.isdigit():
        raise TraceError(f"{name} is not a trace of dflash-chat.", "Traces are made with: dflash-chat --trace FILE")
    if int(number) != FORMAT_VERSION:
        newer = int(number) > FORMAT_VERSION
        formats = f"trace format {int(number)}, and this one reads {FORMAT_VERSION}"
        raise TraceError(
            f"{name} was recorded by {'a newer' if newer else 'an older'} dflash-chat ({formats}).",
            "Update dflash-chat to replay it." if newer else "Record it again.",
        )


class _TraceReader:
    """Puts the frames of one file together, and refuses what no honest trace holds."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._headed = False
        self._turn: int | None = None
        """The number of the latest turn; None before the first. Events that name no turn are of this one."""
        self._first = 0
        """The steps of the trace before that turn's."""
        self._settings: dict[str, Any] = {}
        self._open: int | None = None
        """The turn whose end has not come yet."""
        self._step_spans = StepSpans(0)
        self._texts: dict[str, list[str]] = {"text": [], "thought": []}
        """The texts of the tokens of the latest turn that began, answer and thought apart."""
        self._meter = TurnMeter()
        self._seconds, self._seconds_left = 0.0, MAX_SECONDS
        self._text_left, self._drafted_left, self._tokens_left, self._steps_left = (
            MAX_TEXT, MAX_DRAFTED, MAX_TOKENS, MAX_STEPS
        )  # fmt: skip

    @property
    def progress(self) -> str:
        """How far the file was read, in words."""
        steps = len(self.trace.steps)
        return f"{steps} step{'s' * (steps != 1)}" if steps else "its head"

    def end(self, problem: str | None) -> None:
        """Take note that nothing more comes; ``problem`` says why, if the trace should go on."""
        trace, trace.problem = self.trace, problem
        if problem is not None:
            trace.ending.append(EngineError("generation", problem, turn=self._open))
        if self._open is not None:
            said = {key: "".join(texts) for key, texts in self._texts.items()}
            trace.ending.append(TurnFinished(self._open, "stopped", **said, statistics=self._meter.statistics()))

    def take(self, content: dict[str, Any] | bytes) -> None:
        """Take in the next content of the file: a block of rounds, or an object, of which the first is the header."""
        if isinstance(content, bytes):
            self._block(content)
        elif self._headed:
            self._event(content)
        else:
            self._headed = True
            texts = {key: one_line(value) for key, value in content.items() if isinstance(value, str)}
            self.trace.header = TraceHeader.from_dict(texts)

    def _block(self, data: bytes) -> None:
        """The next rounds of the turn."""
        try:
            block = decoded(data)
            steps = list(block.steps())
        except RecordError:
            damaged(DAMAGED)
        if block.first != len(self.trace.steps) - self._first:
            damaged(f"{DAMAGED}: rounds are missing")
        for step in steps:
            self._look_at(step)
        self.trace.steps.adopt(data, block, steps)
        for step in steps:
            self.trace.spans.append(self._step_spans.tell(step))

    def _begin(self, num_prompt_tokens: int, num_reused_tokens: int) -> None:
        """Begin to add up what the steps of a turn say."""
        self._seconds = 0.0
        self._texts, self._step_spans = {"text": [], "thought": []}, StepSpans(self._turn or 0)
        self._meter = TurnMeter(num_prompt_tokens, num_reused_tokens)

    def _look_at(self, step: Step) -> None:
        """Add up what a step says. Raises ``Damage`` for one that no honest trace holds here."""
        if step.turn != self._turn:
            damaged(f"{DAMAGED}: a step belongs to no turn")
        if max(len(step.draft), len(step.tree)) > MAX_LIST:
            damaged(f"{DAMAGED}: a step drafts more than steps do")
        if step.num_accepted > len(step.draft):
            damaged(f"{DAMAGED}: a step accepts more than was drafted")
        for token in step.emitted:
            self._text_left -= len(token.text)
            if token.channel != "control":
                self._texts["thought" if token.channel == "thought" else "text"].append(token.text)
        self._drafted_left -= len(step.draft) + len(step.tree)
        self._meter.add(step)
        self._seconds_left -= max(step.time - self._seconds, 0.0)
        self._seconds = step.time
        self._steps_left -= 1
        self._tokens_left -= len(step.emitted)
        left = (self._text_left, self._drafted_left, self._tokens_left, self._steps_left, self._seconds_left)
        if min(left) < 0:
            damaged(TOO_LONG)

    def _event(self, data: dict[str, Any]) -> None:
        kind = data.get("event")
        if kind == "TurnStarted":
            data.setdefault("turn", (self._turn or 0) + 1)
            data.setdefault("settings", self._settings)
        elif kind in ("PrefillDone", "TurnFinished"):
            data.setdefault("turn", self._turn)
        if kind == "TurnFinished":
            for key, said in self._texts.items():
                data.setdefault(key, "".join(said))
            data.setdefault("statistics", asdict(self._meter.statistics()))
        event = checked_event(data)
        if event is None:
            damaged(f"{DAMAGED}: an event is not what events are")
        if len(self.trace.marks) >= MAX_EVENTS:
            damaged(TOO_LONG)
        if isinstance(event, TurnStarted):
            self._turn = self._open = event.turn
            self._first, self._settings = len(self.trace.steps), event.settings
            self._begin(event.num_prompt_tokens, event.num_reused_tokens)
        elif isinstance(event, TurnFinished):
            self._open = None
        self.trace.marks.append(EventMark(len(self.trace.steps), event))
