"""What an export shows, in reading order. Traces, sessions, chats, races and lessons make an :class:`ExportedPage`; a
format turns it into text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.events import (
    Clock,
    EmittedToken,
    EngineError,
    EngineReady,
    Event,
    FinishReason,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
)
from engine.rounds.statistics import TurnMeter

from ..conversation.turn import Turn
from ..figures.speed_up import SpeedUp
from ..figures.statistics import CLOCKS
from ..rounds.factor import factors
from ..rounds.passes import PassRows
from ..sessions.sessions import Conversation

SET_LINE = "    "
"""What a line of a prose begins with that keeps its columns."""


def is_set(text: str) -> bool:
    """Whether a line, or a paragraph that begins with it, keeps its columns."""
    return text.startswith(SET_LINE)


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraphs, separated by empty lines. One that begins with four blanks keeps its lines and columns."""

    text: str


@dataclass(frozen=True, slots=True)
class CellTable:
    """Cells as they are shown; the first row names the columns."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class RoundFigure:
    """One round of an answer: what was drafted, kept and corrected."""

    step: Step
    caption: str = ""


@dataclass(frozen=True, slots=True)
class ExportedAnswer:
    """A question and its answer, round by round."""

    question: str
    steps: Sequence[Step]
    label: str = ""
    """Tells answers to the same question apart, as in a race."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings the answer was decoded with, as in ``TurnStarted``; empty where they weren't kept."""
    num_prompt_tokens: int = 0
    num_reused_tokens: int = 0
    prefill_ms: float = 0.0
    reason: FinishReason | None = None
    """Why the answer ended; None when the record ends within it."""
    error: str = ""
    speed_up: SpeedUp | None = None
    """Against its target alone; None where nothing can be said."""

    @property
    def tokens(self) -> Iterator[EmittedToken]:
        return (token for step in self.steps for token in step.emitted)

    @property
    def decode_seconds(self) -> float:
        """Seconds from the answer's first token to its last."""
        return self.steps[-1].time - self.steps[0].time if self.steps else 0.0

    @property
    def text(self) -> str:
        return self._joined("answer")

    @property
    def thought(self) -> str:
        return self._joined("thought")

    def _joined(self, channel: str) -> str:
        return "".join(token.text for token in self.tokens if token.channel == channel)

    @property
    def statistics(self) -> TurnStatistics:
        """Added up from the steps: a record that was cut short has its own."""
        meter = TurnMeter()
        for step in self.steps:
            meter.add(step)
        return meter.statistics(self.num_prompt_tokens, self.num_reused_tokens)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Answers to one question, for one clock that starts at the first token of each."""

    answers: tuple[ExportedAnswer, ...]
    best: int = 0
    """Which of them is held against the first; 0 for none."""
    times: SpeedUp | None = None
    """How many times as fast that was; None for no difference."""


Plain = Heading | Prose | CellTable | RoundFigure | PassRows | ExportedAnswer
"""A section that isn't lanes."""
Section = Plain | Lanes


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the answers come from; empty where it isn't known."""

    target: str = ""
    drafter: str = ""
    device: str = ""
    dtype: str = ""
    created: str = ""
    """When they were recorded, in ISO 8601."""
    program: str = ""
    """The program that recorded them, with its version."""
    server: str = ""
    """The address of the server, where one answered; ``device`` is empty then."""
    dialect: str = ""
    times: Clock = "engine"

    def describe(self) -> str:
        """One line, such as ``gemma + dflash · cpu · float32 · 2026-11-21``."""
        models = " + ".join(filter(None, (self.target, self.drafter)))
        clock = "" if self.times == "engine" else f"times{CLOCKS[self.times]}"
        where = (self.dialect, self.server, clock) if self.server else (self.device, self.dtype)
        return " · ".join(filter(None, (models, *where, self.created[:10], self.program)))


@dataclass(frozen=True, slots=True)
class ExportedPage:
    title: str
    sections: tuple[Section, ...]
    origin: Origin = Origin()

    @property
    def one_by_one(self) -> Iterator[Plain]:
        """The sections with lanes one after the other, for formats that have no clock."""
        for section in self.sections:
            yield from section.answers if isinstance(section, Lanes) else (section,)

    @property
    def answers(self) -> tuple[ExportedAnswer, ...]:
        return tuple(section for section in self.one_by_one if isinstance(section, ExportedAnswer))


class AnswerCollector:
    """Takes the events of one source and keeps them as answers."""

    def __init__(self) -> None:
        self.ready: EngineReady | None = None
        self._answers: list[ExportedAnswer] = []
        self._started: TurnStarted | None = None
        self._steps: list[Step] = []
        self._prefill_ms = 0.0
        self._error = ""

    def add(self, event: Event) -> None:
        """Take the next event."""
        match event:
            case EngineReady():
                self.ready = event
            case TurnStarted():
                self._keep(None)
                self._started = event
            case PrefillDone():
                self._prefill_ms = event.milliseconds
            case Step():
                self._steps.append(event)
            case EngineError():
                self._error = event.message
            case TurnFinished():
                self._keep(event.reason)

    def answers(self) -> tuple[ExportedAnswer, ...]:
        """All so far, the running one included as far as it got."""
        running = self._made(None)
        return (*self._answers, *([running] if running else []))

    def _keep(self, reason: FinishReason | None) -> None:
        made = self._made(reason)
        if made is not None:
            self._answers.append(made)
        self._started, self._steps, self._prefill_ms, self._error = None, [], 0.0, ""

    def _made(self, reason: FinishReason | None) -> ExportedAnswer | None:
        started = self._started
        if started is None:
            return None
        return ExportedAnswer(
            started.question,
            tuple(self._steps),
            settings=started.settings,
            num_prompt_tokens=started.num_prompt_tokens,
            num_reused_tokens=started.num_reused_tokens,
            prefill_ms=self._prefill_ms,
            reason=reason,
            error=self._error,
        )


def answer_of(turn: Turn) -> ExportedAnswer:
    """A turn that has begun, as far as it has come."""
    return ExportedAnswer(
        turn.started.question if turn.started is not None else turn.question,
        tuple(turn.rounds),
        settings=turn.settings,
        num_prompt_tokens=turn.num_prompt_tokens,
        num_reused_tokens=turn.num_reused_tokens,
        prefill_ms=turn.prefill_ms,
        reason=turn.finished.reason if turn.finished is not None else None,
        error=turn.failure.message if turn.failure is not None else "",
        speed_up=turn.factor,
    )


def collect(events: Iterable[Event]) -> AnswerCollector:
    collector = AnswerCollector()
    for event in events:
        collector.add(event)
    return collector


def with_factors(answers: Iterable[ExportedAnswer], times: Clock = "engine") -> tuple[ExportedAnswer, ...]:
    """Answers of one record, each with how many times as fast it came as the target alone, as far as none says so."""
    listed = tuple(answers)
    speed_ups = factors([(answer.settings, answer.steps) for answer in listed], times)
    return tuple(
        replace(each, speed_up=each.speed_up or factor) for each, factor in zip(listed, speed_ups, strict=True)
    )


def origin_of(ready: EngineReady | None, created: str = "", program: str = "") -> Origin:
    if ready is None:
        return Origin(created=created, program=program)
    where = ("", ready.dtype) if ready.server else (ready.device, ready.dtype)
    served = (ready.server, ready.dialect)
    return Origin(ready.target, ready.drafter or "", *where, created, program, *served, times=ready.times)


def conversation_document(conversation: Conversation) -> ExportedPage:
    origin = replace(origin_of(conversation.ready, conversation.created), device="", dtype="")
    sections = [section for turn in conversation.turns for section in _sections_of(turn)]
    answers = iter(with_factors((each for each in sections if isinstance(each, ExportedAnswer)), origin.times))
    made = tuple(next(answers) if isinstance(each, ExportedAnswer) else each for each in sections)
    return ExportedPage(conversation.name, made, origin)


def _sections_of(turn: Turn) -> tuple[Section, ...]:
    """A turn's sections. One that never began, because it was refused, is text."""
    if turn.started is not None:
        return (replace(answer_of(turn), question=turn.question, speed_up=turn.speed_up),)
    failed = (Prose(turn.error.message),) if turn.error else ()
    return (Heading(turn.question), Prose(turn.answer), *failed)
