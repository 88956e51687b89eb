"""A race: one question decoded in several ways, in turns, on one engine, on servers, or on both. A short question
before each run warms the lane and leaves equal caches; odd runs take the lanes backwards, so that drift favours
nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import inf, log, sqrt
from statistics import median, stdev

from engine.commands import Ask, Command, GenerationSettings, Message, Stop
from engine.events import (
    EmittedToken,
    EngineError,
    EngineReady,
    Event,
    Step,
    TurnFinished,
    TurnStarted,
    tokens_per_round,
)
from engine.speculation.lookup import num_agreed

from ..attachments.attachment import without_files
from ..conversation.turn import Turn
from ..figures.speed_up import GOOD, SURE, SpeedUp
from .lanes import LOOKUP, Lane

WARM_UP_QUESTION, WARM_UP_TOKENS, HASTY_TOKENS = "Hi", 16, 4
"""What warms a lane up, and how many tokens of it; fewer while somebody waits for the first lane to move."""
LEAST_NOISE, ERRORS = 0.25, 2.5
"""How far apart, as a share, single runs may lie by chance at least, whatever those at hand do; and by how many
standard errors of their spread lanes must differ."""
SETTLED = 3
"""Runs of a lane that a figure needs at least to be more than about right."""


@dataclass(frozen=True)
class Run:
    answer: Turn

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Its rounds, read once: lanes are compared token by token, and played."""
        return tuple(self.answer.rounds)

    @cached_property
    def tokens(self) -> tuple[EmittedToken, ...]:
        return tuple(token for step in self.steps for token in step.emitted)

    @property
    def decode_seconds(self) -> float:
        """Seconds from the run's first token to its last."""
        return self.answer.decode_seconds

    @property
    def token_ids(self) -> tuple[int, ...] | str:
        """The ids of its tokens; where one is not known, what can be read."""
        ids = [token.id for token in self.tokens]
        known = tuple(id for id in ids if id is not None)
        return known if len(known) == len(ids) else "".join(token.text for token in self.tokens)


@dataclass(frozen=True, slots=True)
class LaneResult:
    """All runs of one lane. Figures are medians over the runs."""

    lane: Lane
    runs: tuple[Run, ...]

    @property
    def shown(self) -> Run:
        """The run in the middle by decode time."""
        return sorted(self.runs, key=lambda run: run.decode_seconds)[(len(self.runs) - 1) // 2]

    @property
    def tok_s(self) -> float:
        """Tokens after the first, per second of decode time."""
        return median(run.answer.statistics.tok_s for run in self.runs)

    @property
    def ttft_ms(self) -> float:
        return median(run.answer.statistics.ttft_ms for run in self.runs)

    @property
    def decode_ms(self) -> float:
        return median(1000 * run.decode_seconds for run in self.runs)

    @property
    def num_tokens(self) -> int:
        return self.shown.answer.num_tokens

    @property
    def target_passes(self) -> int:
        """Forward passes of the target behind the prompt's: one per round."""
        return self.shown.answer.rounds.num_passes

    @property
    def tokens_per_pass(self) -> float:
        """Tokens behind the first that a pass of the target writes; 0 without one."""
        return tokens_per_round(self.num_tokens, self.target_passes)

    @property
    def pass_ms(self) -> float:
        """Milliseconds between two passes of the target: those of a round; 0 without one."""
        return self.decode_ms / self.target_passes if self.target_passes else 0.0

    @property
    def limit(self) -> int | None:
        """The tokens at which its answer was cut off, because a lane may write no more; None where it ended before."""
        return self.num_tokens if self.shown.answer.reason == "length" else None

    @property
    def draft_passes(self) -> int:
        """Rounds that a drafter ran in: what was looked up alone needs none."""
        drafted = (step.draft_columns.sources for step in self.shown.steps)
        return sum(1 for sources in drafted if any(source != LOOKUP for source in sources))

    @property
    def looked_up(self) -> float:
        """The share of the accepted tokens that the text itself guessed."""
        facts = self.shown.answer.statistics
        num_looked_up = sum(each.num_accepted_draft_tokens for each in facts.by_source if each.source == LOOKUP)
        return num_looked_up / max(facts.num_accepted_draft_tokens, 1)

    @property
    def repeats_itself(self) -> bool:
        """Whether every run gave the same tokens."""
        return len({run.token_ids for run in self.runs}) == 1


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first token at which two answers differ."""

    index: int
    """Tokens that are the same before it."""
    first: EmittedToken | None
    """The token that the first lane wrote there; None when its answer had ended."""
    other: EmittedToken | None

    @property
    def margin(self) -> float | None:
        """How far apart the tokens' probabilities are in their lanes: small means rounding. None when unknown."""
        given = [None if token is None else token.probability for token in (self.first, self.other)]
        return None if given[0] is None or given[1] is None else abs(given[0] - given[1])


@dataclass(frozen=True, slots=True)
class RaceResult:
    question: str
    lanes: tuple[LaneResult, ...]
    sides: tuple[EngineReady, ...] = ()
    """The engine or server of each side that the lanes ran on, where that was known."""

    def speed_up(self, lane: LaneResult) -> SpeedUp:
        """How many times as fast as the first lane this one decodes, per token, by the medians that stand beside it; 0
        when too short to tell. It is about right until ``SETTLED`` runs agree. A pass of the target over more rows
        takes no less than one over a single row: where it seems to, both took the same, and what is left is the tokens
        of a pass."""
        first, most = self.lanes[0], self._most(lane)
        if lane is first or not (lane.tok_s and first.tok_s):
            return SpeedUp(1.0 if lane is first else 0.0)
        times, ratios = lane.tok_s / first.tok_s, self._ratios(lane, first)
        sure = len(ratios) >= SETTLED and SURE * stdev(ratios) / sqrt(len(ratios)) <= GOOD
        return SpeedUp(min(times, most), not sure or times > most)

    def seems_faster(self, lane: LaneResult) -> bool:
        """Whether a lane's time is shorter than the tokens of its passes allow, so that its figure is those."""
        first = self.lanes[0]
        return lane is not first and bool(first.tok_s) and lane.tok_s / first.tok_s > self._most(lane)

    def _most(self, lane: LaneResult) -> float:
        first = self.lanes[0]
        alone = not first.lane.settings.speculation and first.lane.side == lane.lane.side and first.tokens_per_pass
        return lane.tokens_per_pass / first.tokens_per_pass if alone and lane.tokens_per_pass else inf

    @staticmethod
    def _ratios(one: LaneResult, other: LaneResult) -> list[float]:
        """Logarithms of how many times as fast the runs of one lane were as those of another, run by run."""
        rates = ([run.answer.statistics.tok_s for run in lane.runs] for lane in (one, other))
        return [log(a / b) for a, b in zip(*rates, strict=False) if a and b]

    def is_faster(self, one: LaneResult, other: LaneResult) -> bool:
        """Whether one lane was faster than another, beyond what runs of one and the same thing differ by. Lanes of one
        engine whose passes write equally many tokens can't differ."""
        if one.lane.side == other.lane.side and one.tokens_per_pass == other.tokens_per_pass:
            return False
        ratios = self._ratios(one, other)
        if not ratios:
            return False
        spread = stdev(ratios) if len(ratios) > 1 else 0.0
        return median(ratios) > max(LEAST_NOISE, ERRORS * spread) / sqrt(len(ratios))

    @property
    def best(self) -> LaneResult:
        """The fastest lane behind the first, whether or not that is more than noise."""
        return max(self.lanes[1:], key=lambda lane: (self.speed_up(lane).times, -lane.target_passes))

    @property
    def winner(self) -> LaneResult | None:
        """The fastest lane; of two that are as fast, the one with fewer passes of the target. None where the first lane
        is no slower and no faster than that: there is no difference."""
        first, best = self.lanes[0], self.best
        return best if self.is_faster(best, first) else first if self.is_faster(first, best) else None

    def divergence(self, lane: LaneResult) -> Divergence | None:
        """Where this lane's answer parts from the first lane's; None when they are the same token by token."""
        ours, theirs = (each.shown.tokens for each in (self.lanes[0], lane))
        if any(token.id is None for token in (*ours, *theirs)):
            return _parting_of_texts(ours, theirs)
        index = num_agreed([token.id for token in ours], [token.id for token in theirs])
        same = index == max(len(ours), len(theirs))
        return None if same else Divergence(index, _at(ours, index), _at(theirs, index))

    @property
    def seconds(self) -> float:
        """The slowest lane's shown decode time: how long replaying the race takes."""
        return max(lane.shown.decode_seconds for lane in self.lanes)


def as_race(question: str, answers: Sequence[tuple[str, Turn]]) -> RaceResult:
    """Answers that were recorded some other time, by name, as a race; the first is what the others are held against."""
    lanes = (Lane(name, GenerationSettings(**answer.settings)) for name, answer in answers)
    runs = ((Run(answer),) for _, answer in answers)
    return RaceResult(question, tuple(LaneResult(lane, run) for lane, run in zip(lanes, runs, strict=True)))


def _parting_of_texts(ours: Sequence[EmittedToken], theirs: Sequence[EmittedToken]) -> Divergence | None:
    """The first token at which two answers differ in their text: servers divide a text among tokens in their own
    ways."""
    texts = ["".join(token.text for token in tokens) for tokens in (ours, theirs)]
    if texts[0] == texts[1]:
        return None
    character = num_agreed(*texts)
    index, first = _token_at(ours, character)
    return Divergence(index, first, _token_at(theirs, character)[1])


def _token_at(tokens: Sequence[EmittedToken], position: int) -> tuple[int, EmittedToken | None]:
    """The token that holds a character of the text, and its number; None behind the end."""
    ends = accumulate(len(token.text) for token in tokens)
    index = next((index for index, end in enumerate(ends) if position < end), len(tokens))
    return index, _at(tokens, index)


def _at(tokens: Sequence[EmittedToken], index: int) -> EmittedToken | None:
    return tokens[index] if index < len(tokens) else None


@dataclass(frozen=True, slots=True)
class _Heat:
    """One question to the engine; a warm-up has no number."""

    lane: int
    measured: bool


class Race:
    """Asks heat after heat as events are fed; ``result`` comes when every lane has run once, or ``failure``."""

    def __init__(
        self,
        messages: Sequence[Message],
        lanes: Sequence[Lane],
        runs: int,
        sends: Sequence[Callable[[Command], None]],
    ) -> None:
        """``messages`` is the conversation, whose last one is the question; ``sends`` passes commands to each side."""
        self.lanes = tuple(lanes)
        self.sides: tuple[EngineReady, ...] = ()
        """What the lanes run on, as far as that is known when the race is over."""
        self.result: RaceResult | None = None
        """The result of every run so far; None until each lane has had one."""
        self.failure: EngineError | None = None
        self.stopped = self.complete = False
        self.pausing = False
        """Whether to ask nothing more once there is a result, until :meth:`go_on`: somebody looks at it."""
        self.idle = True
        """Whether the engine owes no more events of this race."""
        self._messages = tuple(messages)
        self._sends = tuple(sends)
        self._heats = list(_schedule(len(self.lanes), runs))
        self._turn = 0
        self._runs: list[list[Run]] = [[] for _ in self.lanes]
        self._answer: Turn | None = None
        """What comes of the heat that runs; None before it has begun."""

    @property
    def question(self) -> str:
        """The question as it was typed, without its files."""
        return without_files(self._messages[-1].content)[0]

    @property
    def over(self) -> bool:
        return self.complete or self.failure is not None or self.stopped

    @property
    def progress(self) -> tuple[int, int]:
        """Heats behind it, and heats in all; warm-ups count."""
        return max(self._turn - 1, 0), len(self._heats)

    @property
    def running(self) -> tuple[Lane, bool]:
        """The lane that the engine is busy with, and whether this run is measured."""
        heat = self._heats[max(self._turn, 1) - 1]
        return self.lanes[heat.lane], heat.measured

    def start(self) -> None:
        self._next()

    def go_on(self) -> None:
        """Run the lanes again, as often as is left: the result gets better."""
        self.pausing = False
        if self.idle and not self.over:
            self._next()

    def stop(self) -> None:
        """End after the engine's round in flight; what every lane has had stays the result."""
        if not self.over:
            self.stopped = True
            self._sends[self.running[0].side](Stop())

    def apply(self, event: Event) -> None:
        if isinstance(event, TurnStarted):
            self._answer = Turn(event.turn)
        if self._answer is not None:
            self._answer.apply(event)
        if isinstance(event, EngineError):
            self.failure, self.idle = event, event.fatal
        elif isinstance(event, TurnFinished) and event.turn == self._turn:
            self.idle = True
            if not self.over:
                self._finish()

    def _finish(self) -> None:
        heat = self._heats[self._turn - 1]
        if heat.measured:
            assert self._answer is not None, "a turn that has finished has begun"
            self._answer.name = self.lanes[heat.lane].name
            self._runs[heat.lane].append(Run(self._answer))
        if heat.measured and len({len(runs) for runs in self._runs}) == 1:
            lanes = zip(self.lanes, self._runs, strict=True)
            results = tuple(LaneResult(lane, tuple(runs)) for lane, runs in lanes)
            self.result = RaceResult(self.question, results, self.sides)
        self.complete = self._turn == len(self._heats)
        if not self.complete and not (self.pausing and self.result is not None):
            self._next()

    def _next(self) -> None:
        heat = self._heats[self._turn]
        self._turn += 1
        self.idle = False
        lane = self.lanes[heat.lane]
        send = self._sends[lane.side]
        self._answer = None
        if heat.measured:
            send(Ask(self._turn, self._messages, lane.settings))
        else:
            hasty = self.pausing and self.result is None
            settings = replace(lane.settings, max_new_tokens=HASTY_TOKENS if hasty else WARM_UP_TOKENS)
            # Behind the same conversation: what a lane still holds of that, it holds as in the chat.
            send(Ask(self._turn, (*self._messages[:-1], Message("user", WARM_UP_QUESTION)), settings))


def _schedule(lanes: int, runs: int) -> Iterator[_Heat]:
    for run in range(runs):
        order = range(lanes) if run % 2 == 0 else reversed(range(lanes))
        for lane in order:
            yield _Heat(lane, measured=False)
            yield _Heat(lane, measured=True)
