"""Events in, conversation out: the one place where the screen's state changes because the engine said something."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from engine.events import (
    MICROSECONDS,
    EngineError,
    EngineReady,
    Event,
    FinishReason,
    LoadProgress,
    Notice,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
)

from ..figures.labels import accepted_share
from ..figures.speed_up import SpeedUp
from ..figures.statistics import AcceptanceStatistics, Rate, RoundCost, TurnSnapshot
from ..records.round_log import RoundLog
from ..rounds.factor import Answered, Around, around_of, costs_of, factor_of
from ..rounds.history import StepHistory
from ..rounds.rate_meter import RateMeter
from ..source import StepBatch
from ..text.growing_text import GrowingText
from ..text.spans import Span, Spans
from .step_spans import StepSpans, noted, version_spans

Phase = Literal["loading", "ready", "prefill", "streaming", "failed"]


@dataclass(slots=True)
class TurnState:
    """One question and as much of its answer as has arrived."""

    number: int
    num_prompt_tokens: int = 0
    num_reused_tokens: int = 0
    started: TurnStarted | None = None
    finished: TurnFinished | None = None
    prefill_ms: float = 0.0
    answer: GrowingText = field(default_factory=GrowingText)
    by: EngineReady | None = None
    """Who answers; None for what was not decoded here."""
    speculation: bool = True
    around: Around = field(default_factory=Around)
    """What other answers tell of this one's target."""
    speed_up: SpeedUp | None = None
    """How many times as fast it was when it ended; an answer keeps that, whatever is known of its target later."""
    history: StepHistory = field(default_factory=StepHistory)
    """Every step so far."""
    reason: FinishReason | None = None
    error: EngineError | None = None
    statistics: TurnStatistics | None = None
    step_spans: StepSpans = field(init=False)
    rate: RateMeter = field(init=False)

    def __post_init__(self) -> None:
        self.rate = RateMeter(self.history)
        self.step_spans = StepSpans(self.number)

    def kept_in(self, rounds: RoundLog | None) -> TurnState:
        """Makes ``rounds`` the log of all rounds to come, before the first of them; returns itself."""
        self.history = StepHistory(rounds)
        self.rate = RateMeter(self.history)
        return self

    def add(self, step: Step) -> Spans:
        """Take in one more round; returns what it adds to the transcript."""
        self.history.append(step)
        self.rate.follow()
        spans = self.step_spans.tell(step)
        self.answer.append(spans.answer)
        return spans

    def extend(self, batch: StepBatch) -> Spans:
        """Adds many rounds at once, as ``add`` adds one; returns what they add to the transcript."""
        if len(self.history) != batch.start - batch.first:  # only a trace that no engine wrote has such gaps
            return Spans.of(span for step in batch.steps() for span in self.add(step))
        history = self.history = batch.history.between(batch.first, batch.stop)
        self.rate = RateMeter(history)
        self.step_spans.skip(batch.spans, history.num_tokens)
        self.answer.append(batch.spans.answer)
        return batch.spans

    def events(self) -> Iterator[Event]:
        """What the engine said of it so far."""
        if self.started is not None:
            yield self.started
        if self.prefill_ms:
            yield PrefillDone(self.number, self.prefill_ms)
        yield from self.history
        yield from (each for each in (self.error, self.finished) if each is not None)

    def told(self) -> Spans:
        """The transcript's pieces of all steps so far, told once more."""
        pieces, spans = StepSpans(self.number), Spans()
        for step in self.history:
            spans.extend(pieces.tell(step))
        return spans

    @property
    def latest(self) -> Step | None:
        return self.history.latest

    @property
    def latest_drafted(self) -> Step | None:
        """The latest round that had a draft: what the strip shows."""
        return self.history.latest_drafted

    @property
    def acceptance(self) -> AcceptanceStatistics:
        return self.history.acceptance(-1) if self.history else AcceptanceStatistics()

    @property
    def text(self) -> str:
        return str(self.answer)

    @property
    def num_tokens(self) -> int:
        return self.history.num_tokens

    @property
    def cost(self) -> RoundCost:
        return self.history.cost(-1) if self.history else RoundCost()

    @property
    def ttft_ms(self) -> float | None:
        """Milliseconds from the question to the first token; None before that came."""
        return self.history.time[0] / MICROSECONDS if self.history else None

    @property
    def seed(self) -> int | None:
        """The seed of the engine's sampling noise; None where the noise was not the engine's."""
        seed = self.started.settings.get("seed") if self.started else None
        return seed if isinstance(seed, int) else None

    @property
    def snapshot(self) -> TurnSnapshot:
        """What the gauges show of the turn as it is now."""
        latest = self.latest
        return TurnSnapshot(
            step=latest.index if latest else None,
            num_tokens=self.num_tokens,
            ttft_ms=self.ttft_ms,
            rate=self.rate.after(-1) if self.history else Rate(),
            acceptance=self.acceptance,
            cost=self.cost,
            context_length=latest.context_length if latest else self.num_prompt_tokens,
            finished=self.reason is not None,
            totals=self._totals,
            speed_up=self.factor,
        )

    @property
    def factor(self) -> SpeedUp | None:
        """How many times as fast as its target alone it is so far; None where nothing can be said."""
        return self._factor(len(self.history) - 1)

    def _factor(self, index: int) -> SpeedUp | None:
        if not self.speculation or index < 1:
            return None
        if self.speed_up is not None and index == len(self.history) - 1:
            return self.speed_up
        times = self.by.times if self.by is not None else "engine"
        return factor_of(self.history, index, self.around, times)

    @property
    def _totals(self) -> TurnStatistics | None:
        """A server's totals, where the rounds that its stream told don't add up to them; None otherwise."""
        told, shown = self.statistics, self.acceptance
        if told is None or not told.num_draft_tokens:
            return None
        counted = shown.num_draft_tokens, shown.num_accepted_draft_tokens
        return told if (told.num_draft_tokens, told.num_accepted_draft_tokens) != counted else None

    def snapshot_at(self, index: int) -> TurnSnapshot:
        """What the gauges showed after step ``index``. Sums are kept for each step, so this costs the same everywhere.
        Raises ``IndexError``."""
        history = self.history
        index = range(len(history))[index]
        return TurnSnapshot(
            step=index,
            num_tokens=history.emitted_sum[index],
            ttft_ms=self.ttft_ms,
            rate=self.rate.after(index),
            acceptance=history.acceptance(index),
            cost=history.cost(index),
            context_length=history.context_length[index],
            finished=self.reason is not None and index == len(history) - 1,
            speed_up=self._factor(index),
        )


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
        """The turn that runs, or else the last of the path."""
        self.turns: list[TurnState] = []
        """Every turn of this chat that was run or looked at, whichever path it is on, in that order."""
        self._numbered: dict[int, TurnState] = {}
        self.place_of: Callable[[int], tuple[int, int]] = lambda turn: (1, 1)
        """Which version of an answer a turn is, of how many."""
        self.rounds_of: Callable[[int], RoundLog | None] = lambda turn: None
        """Where the rounds of a turn that begins are kept already, if they are written down."""
        self.speed_up_of: Callable[[int], SpeedUp | None] = lambda turn: None
        """How many times as fast a turn was that is told once more; None for one that ends now."""
        self.asked: Callable[[], bool] = lambda: False
        """Tells whether a question is on its way whose turn has not begun."""
        self._notices: list[Notice] = []
        self._told_notices = 0
        """How many of them the transcript has."""
        self._spans = Spans()

    @property
    def busy(self) -> bool:
        return self.phase in ("prefill", "streaming")

    def take_spans(self) -> Spans:
        spans, self._spans = self._spans, Spans()
        return spans

    def apply(self, event: Event | StepBatch) -> None:
        match event:
            case Step() | StepBatch():
                self._add(event)
            case LoadProgress():
                self._progress(event)
            case EngineReady():
                self.ready, self.phase = event, "ready"
            case TurnStarted():
                turn = TurnState(event.turn, event.num_prompt_tokens, event.num_reused_tokens, event)
                turn = self._begin(turn.kept_in(self.rounds_of(event.turn)))
                turn.by = self.ready
                turn.speculation = bool(event.settings.get("speculation", True))
                turn.around = self._around(turn)
                self.phase = "prefill"
            case PrefillDone():
                if self.turn:
                    self.turn.prefill_ms = event.milliseconds
                self.phase = "streaming"
            case TurnFinished():
                self._finish(event)
            case EngineError():
                self._error(event)
            case Notice():
                self._notice(event)

    def _around(self, turn: TurnState) -> Around:
        """What the answers so far tell of the target that answers ``turn``, the latest first."""
        before = (each for each in reversed(self.turns) if _same_target(each.by, turn.by) and each is not turn)
        told = (Answered(_costs(each), each.speculation, each.history, each.around) for each in before)
        return around_of(_costs(turn), told)

    def show_question(self, text: str, files: Sequence[Span] = ()) -> None:
        """A question that this front end did not ask becomes part of the transcript, with lines for its files."""
        if text or files:
            ending = [Span("\n", "plain"), *files, Span("\n", "plain")] if files else [Span("\n\n", "plain")]
            self._spans.extend(Spans.of([Span(text, "prompt"), *ending]))

    def load_anew(self) -> None:
        """Another model is on its way; what was said stays."""
        self.phase = "loading"
        self.loading = []
        self.ready = self.failure = None

    def forget(self) -> None:
        """A new chat: the last turn's answer and statistics leave the screen."""
        self.turn = None
        self.turns.clear()
        self._numbered.clear()
        self._spans = Spans()

    def turn_of(self, number: int) -> TurnState | None:
        """The turn with this number, if it was run or looked at."""
        return self._numbered.get(number)

    def adopt(self, turn: TurnState) -> None:
        """Add a turn to those that are known: one that begins now, or one from a file."""
        self.turns.append(turn)
        self._numbered[turn.number] = turn

    def stand_at(self, turn: TurnState | None) -> None:
        """Make ``turn`` the last one of what the screen shows."""
        self.turn = turn

    def _current(self, number: int | None) -> TurnState | None:
        """The turn that the screen shows last, if it has this number."""
        return self.turn if self.turn is not None and self.turn.number == number else None

    def _begin(self, turn: TurnState) -> TurnState:
        self.turn = turn
        self.adopt(turn)
        return turn

    def _progress(self, event: LoadProgress) -> None:
        if self.loading and self.loading[-1].phase == event.phase:
            self.loading[-1] = event
        else:
            self.loading.append(event)

    def _add(self, steps: Step | StepBatch) -> None:
        if turn := self._current(steps.turn):
            self.phase = "streaming"
            self._spans.extend(turn.add(steps) if isinstance(steps, Step) else turn.extend(steps))

    def _notice(self, event: Notice) -> None:
        """Tell a notice once, however often it comes: ahead of a question or behind its answer, never between."""
        if event not in self._notices:
            self._notices.append(event)
        if not self.busy and (event.ahead or not self.asked()):
            self._tell_notices()

    def _tell_notices(self) -> None:
        for notice in self._notices[self._told_notices :]:
            advice = f"\n  {notice.advice}" if notice.advice else ""
            self._spans.append(Span(f"{notice.message}{advice}\n\n", "note"))
        self._told_notices = len(self._notices)

    def _finish(self, event: TurnFinished) -> None:
        if self.phase != "failed":
            self.phase = "ready"
        turn = self._current(event.turn) or self._begin(TurnState(event.turn))
        turn.finished = event
        turn.speed_up = self.speed_up_of(event.turn) or turn.factor
        turn.reason, turn.statistics = event.reason, event.statistics
        self._spans.extend(ending(turn, event, self.place_of(event.turn)))
        self._tell_notices()

    def _error(self, event: EngineError) -> None:
        if event.turn is not None:
            turn = self._current(event.turn) or self._begin(TurnState(event.turn))  # refused before it began
            turn.error = event
        if event.fatal:
            self.failure, self.phase = event, "failed"
        else:
            refused = self._current(event.turn)
            self._spans.append(failure(event, refused.text if refused else ""))


def _same_target(one: EngineReady | None, other: EngineReady | None) -> bool:
    """Whether both are one target on one device in one dtype, whatever drafter stands beside it: then a token costs the
    same without speculation. False where either is None."""
    if one is None or other is None:
        return False
    named = ((each.target, each.target_hash, each.device, each.dtype, each.server) for each in (one, other))
    return len(set(named)) == 1


def _costs(turn: TurnState) -> Hashable:
    settings = turn.started.settings if turn.started is not None else {}
    return costs_of(settings, turn.by.drafter if turn.by is not None else None)


def failure(event: EngineError, begun: str) -> Span:
    """An error behind as much of an answer as there is."""
    hint = f"\n  {event.hint}" if event.hint else ""
    gap = "\n\n" if begun and not begun.endswith("\n") else ""
    return Span(f"{gap}✗ {event.message}{hint}\n", "error")


def ending(turn: TurnState, event: TurnFinished, place: tuple[int, int]) -> Spans:
    """What stands under an answer. ``place``: which version it is of how many."""
    gap = "" if not event.text else "\n" if event.text.endswith("\n") or turn.error else "\n\n"
    if event.reason == "error" and not (event.text or event.thought):
        return Spans.of(noted("", version_spans(*place), "\n"))  # the error has said all that there is
    return Spans.of(noted(f"{gap}{turn_summary(event, turn.speed_up)}", version_spans(*place), "\n\n"))


def turn_summary(event: TurnFinished, faster: SpeedUp | None = None) -> str:
    """One line under an answer: how many times as fast it came, what it cost, and why it ended if not by itself."""
    facts = event.statistics
    speed = f"{facts.tok_s:.0f} tok/s" if facts.tok_s > 0 else ""
    gain = f"{faster.told()}× as fast" if faster is not None else ""
    parts = (f"{facts.num_tokens} tokens", gain, speed, accepted_share(facts), _REASONS[event.reason])
    return " · ".join(filter(None, parts))
