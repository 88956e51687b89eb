"""A question with its answer: the one thing that asking, the screen, the lines, files and exports share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from engine.events import (
    MICROSECONDS,
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
from engine.rounds.blocks import Block
from engine.rounds.statistics import AcceptanceStatistics
from engine.rounds.store import RoundStore

from ..figures.speed_up import SpeedUp
from ..figures.statistics import TurnSnapshot
from ..rounds.factor import Around, factor_of
from ..rounds.rate_meter import RateMeter
from ..source import StepBatch
from ..text.spans import Spans
from .question_context import NOTHING, QuestionContext
from .step_spans import StepSpans
from .tree import ROOT

CUT_OFF = "The program ended within this answer."


@dataclass(slots=True, eq=False)
class Turn:
    """A node of the conversation's tree. Its rounds stand in ``store``; ``rounds`` is the same store, with all of them
    counted: they are as they come, or for a turn of a file when somebody looks."""

    number: int
    question: str = ""
    parent: int = ROOT
    name: str = ""
    """The name of the branch that begins here; empty for none."""
    system: str | None = None
    time: str = ""
    """When it was asked, ISO 8601; empty for what was asked here."""
    once: bool = False
    """Whether the settings are for this answer alone."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What it is to be decoded with; once it has begun, what it is, as in ``TurnStarted``."""
    attached: QuestionContext = NOTHING
    """What goes with the question."""
    by: EngineReady | None = None
    """Who answers; None where that isn't known."""
    started: TurnStarted | None = None
    prefill_ms: float = 0.0
    store: RoundStore = field(default_factory=RoundStore)
    error: EngineError | None = None
    reason: FinishReason | None = None
    """Why it ended; None while it has no end, and where the program ended within it."""
    running: bool = False
    """Whether it was asked here, or begun, and has no end yet."""
    around: Around = field(default_factory=Around)
    """What other answers tell of this one's target."""
    speed_up: SpeedUp | None = None
    """How many times as fast it was when it ended; an answer keeps that, whatever is known of its target later."""
    _texts: tuple[str | None, str | None] = None, None
    """Answer and thought where they end otherwise than the rounds say: a server may tell more than its stream did."""
    _finished: TurnFinished | None = None
    _num_rounds: int = 0
    """How many rounds a file has of it, those that are damaged included; or how many were told."""
    _rate: RateMeter | None = None
    _factor_at: tuple[int, SpeedUp | None] | None = None
    """The factor that is shown, and behind which round it was counted."""
    _step_spans: StepSpans = field(init=False)

    def __post_init__(self) -> None:
        self._step_spans = StepSpans(self.number)

    # What was said

    @property
    def text(self) -> str:
        """The answer as far as it has come."""
        return self.store.answer if self._texts[0] is None else self._texts[0]

    @property
    def thought(self) -> str:
        """What it thought, as far as it has come."""
        return self.store.thought if self._texts[1] is None else self._texts[1]

    @property
    def answer(self) -> str:
        """The answer when it has ended; without one, neither it nor its question is part of what the model reads."""
        return "" if self.running else self.text

    @property
    def is_whole(self) -> bool:
        """Whether the answer ended by itself: the same question with the same settings would end there again."""
        return self.reason in ("stop", "length", "context")

    @property
    def begun(self) -> bool:
        """Whether the engine took the question, or refused it. Otherwise the program was left before it was asked."""
        return self.started is not None or self.error is not None or self.reason is not None or self.store.held > 0

    @property
    def target(self) -> str | None:
        return self.by.target if self.by is not None else None

    @property
    def drafter(self) -> str | None:
        return self.by.drafter if self.by is not None else None

    @property
    def speculation(self) -> bool:
        return self.started is None or bool(self.started.settings.get("speculation", True))

    @property
    def num_prompt_tokens(self) -> int:
        return self.started.num_prompt_tokens if self.started is not None else 0

    @property
    def num_reused_tokens(self) -> int:
        return self.started.num_reused_tokens if self.started is not None else 0

    @property
    def seed(self) -> int | None:
        """The seed of the engine's sampling noise; None where the noise was not the engine's."""
        seed = self.started.settings.get("seed") if self.started else None
        return seed if isinstance(seed, int) else None

    @property
    def failure(self) -> EngineError | None:
        """Why there is no answer, or not all of it."""
        if self.error is None and self.reason is None and not self.running:
            return EngineError("generation", CUT_OFF, turn=self.number)
        return self.error

    @property
    def finished(self) -> TurnFinished | None:
        """How it ended, with what the rounds add up to where nobody said otherwise; None while it has no end."""
        if self._finished is None and not self.running:
            reason, text, thought = self.reason or "error", self.text, self.thought
            self._finished = TurnFinished(self.number, reason, text, thought, self.statistics)
        return self._finished

    @property
    def figures(self) -> TurnStatistics:
        return self.finished.statistics if self.finished is not None else TurnStatistics()

    @property
    def ending(self) -> FinishReason | None:
        """Why it ended, where the program ended within it as well; None while it has no end."""
        return self.finished.reason if self.finished is not None else None

    @property
    def statistics(self) -> TurnStatistics:
        """What its rounds add up to, whatever is told of them: a record that was cut short has its own."""
        return self.rounds.statistics(self.num_prompt_tokens, self.num_reused_tokens)

    @property
    def tokens(self) -> Iterator[EmittedToken]:
        return (token for step in self.rounds for token in step.emitted)

    @property
    def decode_seconds(self) -> float:
        """Seconds from the answer's first token to its last."""
        return self.rounds.seconds

    @property
    def opening(self) -> tuple[TurnStarted, PrefillDone] | tuple[()]:
        """The events before the rounds; none where it never began."""
        return (self.started, PrefillDone(self.number, self.prefill_ms)) if self.started is not None else ()

    @property
    def closing(self) -> list[EngineError | TurnFinished]:
        """The events behind the rounds."""
        return [event for event in (self.failure, self.finished) if event is not None]

    # What comes while it is decoded

    def apply(self, event: Event) -> None:
        """Take in what the engine says of it, for whoever keeps no transcript."""
        match event:
            case TurnStarted():
                self.begin(event, self.by, None)
            case PrefillDone():
                self.prefill_ms = event.milliseconds
            case Step():
                self.add(event)
            case EngineError():
                self.error = event
            case TurnFinished():
                self.finish(event)

    def begin(self, event: TurnStarted, by: EngineReady | None, rounds: RoundStore | None) -> None:
        """``rounds``: the store of all rounds to come, where somebody else appends them."""
        self.started, self.by, self.settings, self.running = event, by, event.settings, True
        self.question = self.question or event.question
        self._keep_in(RoundStore() if rounds is None else rounds)

    def _keep_in(self, store: RoundStore) -> None:
        self.store, self._rate, self._factor_at = store, RateMeter(store), None

    def add(self, step: Step) -> Spans:
        """Take in one more round; returns what it adds to the transcript."""
        if self.store.held == self._num_rounds:
            self.store.put(step)
        self._num_rounds += 1
        self.store.count(self._num_rounds)
        self.store.seal()
        self.rate.follow()
        return self._step_spans.tell(step)

    def extend(self, batch: StepBatch) -> Spans:
        """Adds many rounds at once, as ``add`` adds one; returns what they add to the transcript."""
        if self._num_rounds != batch.start - batch.first:  # only a file that no engine wrote has such gaps
            return Spans.of(span for step in batch.steps() for span in self.add(step))
        before = self.store.answer
        self._keep_in(batch.rounds.between(batch.first, batch.stop))
        self._num_rounds = len(self.store)
        self._step_spans.skip(batch.spans, self.store.num_tokens)
        self.store.say(before + batch.spans.answer)
        return batch.spans

    def finish(self, event: TurnFinished, speed_up: SpeedUp | None = None) -> None:
        self._finished, self.reason, self.running, self.speed_up = event, event.reason, False, speed_up
        self._say(event.text, event.thought)

    def _say(self, text: str, thought: str) -> None:
        """What it is said to be in the end; kept where the rounds don't say it."""
        told = ((text, self.store.answer), (thought, self.store.thought))
        text_, thought_ = (None if text == known else text for text, known in told)
        self._texts = text_, thought_

    # What its file says

    def take(self, data: bytes | None, block: Block) -> None:
        """Take in rounds of a file, without those that are known already: a program that was killed while it put blocks
        in the place of rounds leaves both. ``data``: the block as it stands there. Raises :class:`RecordError`."""
        known = max(self._num_rounds - block.first, 0)
        if known >= len(block):
            return
        if known or data is None or block.turn != self.number:
            for step in [replace(step, turn=self.number) for step in block.steps(known)]:
                self.store.put(step)
        else:
            self.store.adopt(data, block)
        self._num_rounds = block.first + len(block)

    def misses(self, block: Block) -> bool:
        """Whether rounds are missing before these."""
        return block.first > self._num_rounds

    def close(self, event: TurnFinished, figures: Mapping[str, Any]) -> None:
        """How it ended, as a file tells it: what isn't in ``figures`` the rounds say."""
        self.reason = event.reason
        self._say(*(getattr(event, key) if key in figures else getattr(self, key) for key in ("text", "thought")))
        if "statistics" in figures:
            self._finished = replace(event, text=self.text, thought=self.thought)

    # What is counted of its rounds

    @property
    def rounds(self) -> RoundStore:
        """Every round so far; of a file's, up to the first that is damaged."""
        if self._rate is None:
            self._keep_in(self.store.count())
        return self.store

    @property
    def rate(self) -> RateMeter:
        return self._rate or RateMeter(self.rounds)

    def rebuild_spans(self) -> Spans:
        """The transcript's pieces of all steps so far, told once more."""
        pieces, spans = StepSpans(self.number), Spans()
        for step in self.rounds:
            spans.extend(pieces.tell(step))
        return spans

    @property
    def latest(self) -> Step | None:
        return self.rounds.latest

    @property
    def latest_drafted(self) -> Step | None:
        """The latest round that had a draft: what the strip shows."""
        return self.rounds.latest_drafted

    @property
    def num_tokens(self) -> int:
        return self.rounds.num_tokens

    @property
    def snapshot(self) -> TurnSnapshot:
        """What the gauges show of the turn as it is now."""
        if len(self.rounds):
            return self.snapshot_at(-1)
        totals = self._totals(AcceptanceStatistics())
        return TurnSnapshot(context_length=self.num_prompt_tokens, finished=not self.running, totals=totals)

    def snapshot_at(self, index: int) -> TurnSnapshot:
        """What the gauges showed after step ``index``. Sums are kept for each step, so this costs the same everywhere.
        Raises ``IndexError``."""
        rounds = self.rounds
        length = len(rounds)
        index = range(length)[index]
        acceptance, finished = rounds.acceptance(index), index == length - 1 and not self.running
        return TurnSnapshot(
            step=index,
            num_tokens=rounds.emitted_sum[index],
            ttft_ms=rounds.time[0] / MICROSECONDS,
            rate=self.rate.after(index),
            acceptance=acceptance,
            cost=rounds.cost(index),
            context_length=rounds.context_length[index],
            finished=finished,
            totals=self._totals(acceptance) if finished else None,
            speed_up=self.speed_up if finished and self.speed_up is not None else self._shown_factor(index),
        )

    @property
    def factor(self) -> SpeedUp | None:
        """How many times as fast as its target alone it is so far; None where nothing can be said."""
        return self.speed_up if self.speed_up is not None else self._factor(len(self.rounds) - 1)

    def _factor(self, index: int) -> SpeedUp | None:
        if not self.speculation or index < 1:
            return None
        return factor_of(self.rounds, index, self.around, self.by.times if self.by is not None else "engine")

    def _shown_factor(self, index: int) -> SpeedUp | None:
        """The factor after step ``index``, or after one of the latest 32nd of the steps up to it: it costs more than
        everything else that a frame shows."""
        index -= index % (1 << max(index.bit_length() - 6, 0))
        if self._factor_at is None or self._factor_at[0] != index:
            self._factor_at = index, self._factor(index)
        return self._factor_at[1]

    def _totals(self, shown: AcceptanceStatistics) -> TurnStatistics | None:
        """A server's totals, where the rounds that its stream told don't add up to them; None otherwise."""
        statistics = self.figures
        counted = shown.num_draft_tokens, shown.num_accepted_draft_tokens
        differ = (statistics.num_draft_tokens, statistics.num_accepted_draft_tokens) != counted
        return statistics if statistics.num_draft_tokens and differ else None
