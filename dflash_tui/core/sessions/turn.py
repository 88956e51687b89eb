"""A turn as the file of a conversation tells it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

from engine.events import (
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

from ..conversation.question_context import NOTHING, QuestionContext
from ..conversation.tree import ROOT
from ..figures.speed_up import SpeedUp
from ..files.running import RunResult
from ..records.blocks import Block
from ..records.numbers import RecordError
from ..records.round_log import RoundLog
from .checked_events import RecordedEvent

CUT_OFF = "The program ended within this answer."


@dataclass(slots=True)
class StoredTurn:
    """One question and what came back, a node of the tree. ``reason`` is None when the file ends within the turn."""

    number: int
    question: str
    time: str = ""
    """When it was asked, ISO 8601."""
    system: str | None = None
    parent: int = ROOT
    name: str = ""
    """The name of the branch that begins here; empty for none."""
    once: bool = False
    """Whether the settings were for this answer alone."""
    by: EngineReady | None = None
    """Who answered."""
    started: TurnStarted | None = None
    prefill_ms: float = 0.0
    rounds: RoundLog = field(default_factory=RoundLog)
    num_rounds: int = 0
    """How many rounds it had up to the last of these: some may be damaged."""
    answer: str = ""
    thought: str = ""
    error: EngineError | None = None
    reason: FinishReason | None = None
    """Why it ended."""
    totals: TurnStatistics | None = None
    """What it cost by whoever answered; None where its rounds add up to that."""
    speed_up: SpeedUp | None = None
    """How many times as fast as its target alone it was when it ended, where that was known."""
    beside: QuestionContext = NOTHING
    """What went with the question."""
    runs: list[RunResult] = field(default_factory=list)
    """What came of running code blocks of its answer."""

    def take(self, data: bytes | None, block: Block) -> None:
        """Take in rounds, without those that are known already: a program that was killed while it put blocks in the
        place of rounds leaves both. ``data``: the block as its file has it. Raises :class:`RecordError`."""
        known = max(self.num_rounds - block.first, 0)
        if known >= len(block):
            return
        if known or data is None or block.turn != self.number:
            steps = [replace(step, turn=self.number) for step in block.steps(known)]
            for step in steps:
                self.rounds.append(step)
            answer, thought = said(steps, "answer"), said(steps, "thought")
        else:
            answer, thought = block.texts()
            self.rounds.adopt(data, block)
        self.num_rounds = block.first + len(block)
        self.answer += answer
        self.thought += thought

    def steps(self) -> list[Step]:
        """Its rounds, up to one that is damaged."""
        steps: list[Step] = []
        with suppress(RecordError):
            steps.extend(self.rounds)
        return steps

    @property
    def begun(self) -> bool:
        """Whether the engine took the question, or refused it. Otherwise the program was left before it was asked."""
        return self.started is not None or self.error is not None or self.reason is not None or len(self.rounds) > 0

    def events(self) -> list[Event]:
        """What the engine said; a turn cut off ends with an error."""
        return [*self.opening, *(self.steps() if self.started is not None else ()), *self.closing]

    @property
    def opening(self) -> tuple[RecordedEvent, ...]:
        """The events before the rounds; none where the turn never began."""
        return (self.started, PrefillDone(self.number, self.prefill_ms)) if self.started is not None else ()

    @property
    def closing(self) -> tuple[*tuple[EngineError, ...], TurnFinished]:
        """The events behind the rounds: an error, where there was one, and the end."""
        error = self.error
        if error is None and self.reason is None:
            error = EngineError("generation", CUT_OFF, turn=self.number)
        return (error, self.ending) if error is not None else (self.ending,)

    @property
    def ending(self) -> TurnFinished:
        """How it ended."""
        return TurnFinished(self.number, self.reason or "error", self.answer, self.thought, self.figures)

    @property
    def figures(self) -> TurnStatistics:
        if self.totals is not None:
            return self.totals
        started = (self.started.num_prompt_tokens, self.started.num_reused_tokens) if self.started else ()
        meter = TurnMeter(*started)
        for step in self.steps():
            meter.add(step)
        return meter.statistics()


def said(steps: list[Step], channel: str) -> str:
    return "".join(token.text for step in steps for token in step.emitted if token.channel == channel)
