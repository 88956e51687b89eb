"""Events in, conversation out: the one place where the screen's state changes because the engine said something."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from engine.events import (
    EmittedToken,
    EngineError,
    EngineReady,
    Event,
    FinishReason,
    LoadProgress,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
)

from .history import StepHistory
from .statistics import AcceptanceStatistics, RateMeter, RoundCost, TurnSnapshot

Phase = Literal["loading", "ready", "prefill", "streaming", "failed"]
Look = Literal["prompt", "accepted", "corrected", "bonus", "plain", "thought", "note", "error"]
"""How a piece of the transcript is drawn: who wrote it, and for the answer, why the token was emitted."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the transcript in one look."""

    text: str
    look: Look
    turn: int = 0
    token: int | None = None
    """Which of that turn's emitted tokens it is, counted from 0; None for what no model wrote."""


@dataclass(slots=True)
class TurnState:
    """One question and as much of its answer as has arrived."""

    number: int
    num_prompt_tokens: int = 0
    num_reused_tokens: int = 0
    started: TurnStarted | None = None
    finished: TurnFinished | None = None
    prefill_ms: float = 0.0
    pieces: list[str] = field(default_factory=list)
    rate: RateMeter = field(default_factory=RateMeter)
    acceptance: AcceptanceStatistics = field(default_factory=AcceptanceStatistics)
    cost: RoundCost = field(default_factory=RoundCost)
    num_tokens: int = 0
    ttft_ms: float | None = None
    """From the question to the first token; None before it came."""
    speculation: bool = True
    history: StepHistory = field(default_factory=StepHistory)
    """Every step so far."""
    latest: Step | None = None
    latest_drafted: Step | None = None
    """The latest round that had a draft: what the strip shows."""
    reason: FinishReason | None = None
    error: EngineError | None = None
    statistics: TurnStatistics | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def seed(self) -> int:
        """Of the sampling noise."""
        seed = self.started.settings.get("seed", 0) if self.started else 0
        return seed if isinstance(seed, int) else 0

    @property
    def snapshot(self) -> TurnSnapshot:
        """What the gauges show of the turn as it is now."""
        latest = self.latest
        return TurnSnapshot(
            step=latest.index if latest else None,
            num_tokens=self.num_tokens,
            ttft_ms=self.ttft_ms,
            rate=self.rate.reading,
            acceptance=self.acceptance,
            cost=self.cost,
            context_length=latest.context_length if latest else self.num_prompt_tokens,
            finished=self.reason is not None,
        )


BASELINE_TOKENS = 16
"""A shorter answer is no measure of the target's own speed."""
THOUGHT_HEAD = "✻ thought · Alt+H\n"
"""Stands above a thought, and alone where thoughts are folded away."""

_REASONS: dict[FinishReason, str] = {
    "stop": "",
    "length": "reached the token limit",
    "context": "the context is full: Ctrl+N starts a new chat, /edit takes this question back",
    "stopped": "⏹ stopped",
    "error": "ended by an error",
}


class Reducer:
    """Applies events in order. ``take_spans`` hands out what the transcript gained since the last call."""

    def __init__(self) -> None:
        self.phase: Phase = "loading"
        self.loading: list[LoadProgress] = []
        """The latest progress of each phase, in the order the phases began."""
        self.ready: EngineReady | None = None
        self.failure: EngineError | None = None
        self.turn: TurnState | None = None
        """The newest turn."""
        self.turns: list[TurnState] = []
        """Every turn of this chat, oldest first; those taken back too, since they were run."""
        self.plain_ms: float | None = None
        """Milliseconds per token of the target alone, from the newest answer of this session without speculation; None
        when there was none. What a speed-up is measured against."""
        self._spans: list[Span] = []
        self._thinking = False

    @property
    def busy(self) -> bool:
        return self.phase in ("prefill", "streaming")

    def take_spans(self) -> list[Span]:
        spans, self._spans = self._spans, []
        return spans

    def apply(self, event: Event) -> None:
        match event:
            case Step():
                self._step(event)
            case LoadProgress():
                self._progress(event)
            case EngineReady():
                self.ready, self.phase, self.plain_ms = event, "ready", None
            case TurnStarted():
                turn = self._begin(TurnState(event.turn, event.num_prompt_tokens, event.num_reused_tokens, event))
                turn.speculation = bool(event.settings.get("speculation", True))
                self.phase, self._thinking = "prefill", False
            case PrefillDone():
                if self.turn:
                    self.turn.prefill_ms = event.milliseconds
                self.phase = "streaming"
            case TurnFinished():
                self._finish(event)
            case EngineError():
                self._error(event)

    def show_question(self, text: str) -> None:
        """A question that this front end did not ask becomes part of the transcript."""
        if text:
            self._spans += [Span(text, "prompt"), Span("\n\n", "plain")]

    def forget(self) -> None:
        """A new chat: the last turn's answer and statistics leave the screen."""
        self.turn = None
        self.turns.clear()
        self._spans.clear()

    def _begin(self, turn: TurnState) -> TurnState:
        self.turn = turn
        self.turns.append(turn)
        return turn

    def _progress(self, event: LoadProgress) -> None:
        if self.loading and self.loading[-1].phase == event.phase:
            self.loading[-1] = event
        else:
            self.loading.append(event)

    def _step(self, step: Step) -> None:
        turn = self.turn
        if turn is None or turn.number != step.turn:
            return
        self.phase = "streaming"
        turn.history.append(step)
        turn.latest = step
        turn.latest_drafted = step if step.draft else turn.latest_drafted
        turn.rate.add(step.time, len(step.emitted))
        turn.acceptance = turn.acceptance.after(step)
        turn.cost = turn.cost.after(step)
        if turn.ttft_ms is None:
            turn.ttft_ms = 1000 * step.time
        for token in step.emitted:
            self._emit(turn, token)
            turn.num_tokens += 1

    def _emit(self, turn: TurnState, token: EmittedToken) -> None:
        if token.channel == "control" or not token.text:
            return
        thought = token.channel == "thought"
        if thought and not self._thinking:
            self._spans.append(Span(THOUGHT_HEAD, "note"))
        elif self._thinking and not thought:
            self._spans.append(Span("\n\n", "thought"))
        self._thinking = thought
        if not thought:
            turn.pieces.append(token.text)
        self._spans.append(Span(token.text, "thought" if thought else token.verdict, turn.number, turn.num_tokens))

    def _finish(self, event: TurnFinished) -> None:
        if self.phase != "failed":
            self.phase = "ready"
        turn = self.turn
        if turn is None or turn.number != event.turn:
            turn = self._begin(TurnState(event.turn))
        turn.finished = event
        turn.reason, turn.statistics = event.reason, event.statistics
        if not turn.speculation and event.statistics.num_tokens >= BASELINE_TOKENS and event.statistics.tok_s > 0:
            self.plain_ms = 1000 / event.statistics.tok_s
        gap = "" if not event.text else "\n" if event.text.endswith("\n") else "\n\n"
        self._spans.append(Span(f"{gap}{turn_summary(event)}\n\n", "note"))

    def _error(self, event: EngineError) -> None:
        if event.turn is not None and self.turn is not None and self.turn.number == event.turn:
            self.turn.error = event
        if event.fatal:
            self.failure, self.phase = event, "failed"
        else:
            hint = f"\n  {event.hint}" if event.hint else ""
            self._spans.append(Span(f"✗ {event.message}{hint}\n", "error"))


def turn_summary(event: TurnFinished) -> str:
    """One line under an answer: what it cost, and why it ended if not by itself."""
    facts = event.statistics
    parts = [f"{facts.num_tokens} tokens"]
    if facts.tok_s > 0:
        parts.append(f"{facts.tok_s:.0f} tok/s")
    if facts.num_spec_steps:
        parts.append(f"acceptance length {facts.mean_acceptance_length:.2f}")
    if _REASONS[event.reason]:
        parts.append(_REASONS[event.reason])
    return " · ".join(parts)


def statistics_table(facts: TurnStatistics) -> str:
    """The turn's numbers, a line each, under the names that ``--json`` uses."""
    values = {
        "num_prompt_tokens": facts.num_prompt_tokens,
        "num_reused_tokens": facts.num_reused_tokens,
        "num_tokens": facts.num_tokens,
        "num_spec_steps": facts.num_spec_steps,
        "num_draft_tokens": facts.num_draft_tokens,
        "num_accepted_draft_tokens": facts.num_accepted_draft_tokens,
        "mean_acceptance_length": f"{facts.mean_acceptance_length:.2f}",
        "acceptance_histogram": " ".join(map(str, facts.acceptance_histogram)),
        "ttft_ms": f"{facts.ttft_ms:.1f}",
        "decode_ms": f"{facts.decode_ms:.1f}",
        "tok_s": f"{facts.tok_s:.1f}",
    }
    return "\n".join(f"{name:<26}{value}" for name, value in values.items())
