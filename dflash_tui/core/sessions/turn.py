"""A turn as the file of a conversation tells it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any

from engine.events import (
    EngineError,
    Event,
    FinishReason,
    PrefillDone,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
    statistics_from_dict,
)
from engine.rounds.statistics import TurnMeter

from ..conversation.question_context import NOTHING, QuestionContext
from ..conversation.tree import ROOT
from ..figures.speed_up import SpeedUp
from ..files.running import RunResult
from ..traces.checked_events import is_sound
from .session_lines import StepText, steps_in

CUT_OFF = "The program ended within this answer."


@dataclass(slots=True)
class StoredTurn:
    """One question and what came back, a node of the tree. ``reason`` is None when the log ends within the turn."""

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
    target: str | None = None
    drafter: str | None = None
    """The names of the models that answered."""
    started: TurnStarted | None = None
    prefill_ms: float = 0.0
    rounds: list[StepText] = field(default_factory=list)
    """The text of each round."""
    blocks: list[bytes] = field(default_factory=list)
    """The rounds themselves."""
    reason: FinishReason | None = None
    error: str | None = None
    hint: str = ""
    statistics: Sequence[Any] = ()
    """The fields of ``TurnStatistics``, in their order."""
    speed_up: SpeedUp | None = None
    """How many times as fast as its target alone it was when it ended, where that was known."""
    beside: QuestionContext = NOTHING
    """What went with the question."""
    runs: list[RunResult] = field(default_factory=list)
    """What came of running code blocks of its answer."""

    @property
    def answer(self) -> str:
        return "".join(each.answer for each in self.rounds)

    @property
    def thought(self) -> str:
        return "".join(each.thought for each in self.rounds)

    @property
    def begun(self) -> bool:
        """Whether the engine took the question: it has begun, written a round, failed or ended. Otherwise the program
        was left before it was asked."""
        return self.started is not None or bool(self.rounds) or self.error is not None or self.reason is not None

    def events(self) -> list[Event] | None:
        """What the engine said; a turn cut off ends with an error. None where it never began."""
        if self.started is None:
            return None
        steps = steps_in(self.blocks, self.rounds)
        if any(step.turn != self.number for step in steps):
            steps = tuple(replace(step, turn=self.number) for step in steps)
        events: list[Event] = [self.started, PrefillDone(self.number, self.prefill_ms), *steps]
        error = self.error or (CUT_OFF if self.reason is None else None)
        if error is not None:
            events.append(EngineError("generation", error, self.hint, turn=self.number))
        return [*events, self.finished()]

    def finished(self) -> TurnFinished:
        """How it ended, with those statistics that this version knows."""
        return TurnFinished(self.number, self.reason or "error", self.answer, self.thought, self.figures)

    @property
    def figures(self) -> TurnStatistics:
        """The turn's statistics; of a turn cut off, whose file doesn't tell them, what its rounds add up to."""
        if self.statistics or self.started is None:
            return known_statistics(self.statistics)
        meter = TurnMeter(self.started.num_prompt_tokens, self.started.num_reused_tokens)
        for step in steps_in(self.blocks, self.rounds):
            meter.add(step)
        return meter.statistics()


def known_statistics(told: Sequence[Any]) -> TurnStatistics:
    """A turn's figures, as far as this version knows them; none where they are no figures."""
    known = {each.name: value for each, value in zip(fields(TurnStatistics), told, strict=False)}
    with suppress(TypeError, KeyError):
        figures = statistics_from_dict({"acceptance_histogram": (), **known})
        if is_sound(figures):
            return figures
    return TurnStatistics()
