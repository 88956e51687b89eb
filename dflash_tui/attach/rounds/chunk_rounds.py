"""Makes rounds of a stream in which each event stands for one decoding step, as far as the server keeps up: a guess at
first, which the server's own count at the end settles (:mod:`.matching`). Where there is neither guess nor count, an
answer is plain text and its totals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.events import Settled, Step, TurnStatistics, Verdict

from ..chunks import Chunk, PromptUsage, usage_prompt
from ..untrusted import count
from .matching import ALONE, Role, RoundCount, by_order, by_tally, by_tokens
from .steps import WIDEST, StepMaker, Texts, Token, TurnReport, verdicts, with_counts
from .token_texts import TokenTexts


@dataclass(frozen=True, slots=True)
class Count:
    """The server's totals of one answer's speculation, read at its end; None where it doesn't say."""

    tokens: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    rounds: int | None = None
    histogram: tuple[int, ...] = ()
    """Entry k: rounds that accepted k drafted tokens."""
    order: tuple[RoundCount, ...] = ()
    """Every round in its order, where the server lists them one by one."""

    @property
    def told(self) -> bool:
        """Whether it says anything of speculation."""
        return self.drafted is not None or self.rounds is not None


@dataclass(slots=True)
class EventTokens:
    """The tokens of one event, and the seconds after the question at which it came."""

    tokens: list[Token]
    time: float


@dataclass(frozen=True, slots=True)
class Guess:
    """What an event is taken for before the server's count comes."""

    speculates: bool | None = None
    """Whether the server guesses ahead; None when that is not known."""
    drafted: int = 0
    """Tokens that a round drafts; 0 where that is not known."""
    by_event: bool = True
    """Whether each event is one decoding step, as far as is known; False where events say nothing of steps."""


Counter = Callable[[Sequence[Chunk]], Count]
"""Reads the count from a stream's events that have more than text, in order."""


class ChunkRounds:
    """Turns a stream of one event per step into rounds: an implementation of
    :class:`dflash_tui.attach.rounds.steps.StreamRounds`."""

    def __init__(self, steps: StepMaker, guess: Guess, counter: Counter, uncounted: str, odds: bool = False) -> None:
        """``uncounted``: why the server may send no count, in words. ``odds``: whether the probabilities it sends are
        those it sampled from."""
        self.steps = steps
        self._guess, self._counter, self._uncounted = guess, counter, uncounted
        self._odds = odds
        self._parts: list[EventTokens] = []
        self._texts = Texts()
        self._token_texts = TokenTexts()
        self._ends: list[Chunk] = []
        self._tokens = 0
        self._whole = False
        self.count = Count()

    def take(self, chunk: Chunk) -> list[Step]:
        before = len(self.steps.made)
        self._read_prompt(chunk)
        if (not chunk.pieces and not chunk.ids) or chunk.finish:
            self._ends.append(chunk)
        tokens = self._tokens_of(chunk)
        if tokens and not self._parts:
            self._tell(EventTokens(tokens[:1], chunk.time))
            tokens = tokens[1:]
        if tokens:
            self._tell(EventTokens(tokens, chunk.time))
        return self.steps.made[before:]

    def end(self, whole: bool) -> list[Step]:
        before = len(self.steps.made)
        self._whole = whole
        self.count = self._counter(self._ends)
        time = self._ends[-1].time if self._ends else self._parts[-1].time if self._parts else 0.0
        unseen = (self.count.tokens or 0) - self._tokens
        if self._guess.by_event and self._parts and 0 < unseen <= WIDEST:  # the stop token brings no text and no event
            self._tell(EventTokens([self._texts.token() for _ in range(unseen)], time))
        while self._texts:
            self._tell(EventTokens([self._texts.token()], time))
        return self.steps.made[before:]

    def report(self) -> TurnReport:
        settled = self._settle()
        counted = self.count
        statistics = with_counts(self._own(settled), counted.tokens, counted.drafted, counted.accepted, counted.rounds)
        if counted.histogram:
            statistics = replace(statistics, acceptance_histogram=counted.histogram)
        return TurnReport(statistics, settled, counted.told)

    def _own(self, settled: Settled | None) -> TurnStatistics:
        if settled is None or not settled.steps:
            return self.steps.statistics()
        fresh = self.steps.again()
        fresh.made = list(settled.steps)
        return fresh.statistics()

    def _read_prompt(self, chunk: Chunk) -> None:
        if ids := chunk.data.get("prompt_token_ids"):
            self.steps.prompt = PromptUsage(len(ids) if isinstance(ids, list) else 0)
        if told := usage_prompt(chunk):
            self.steps.prompt = told

    def _tokens_of(self, chunk: Chunk) -> list[Token]:
        """The tokens that an event stands for. Without ids or probabilities the usage's running count tells how
        many."""
        so_far = count(chunk.usage.get("completion_tokens")) if chunk.data.get("choices") else None
        number = len(chunk.ids) or len(chunk.logprobs)
        if not number and so_far is not None and 0 <= so_far - self._tokens <= WIDEST:
            number = so_far - self._tokens
        elif not number and chunk.spoke:
            number = 1
        self._texts.put(chunk.pieces)
        if not number:
            return []
        self._tokens += number
        return self._token_texts.tokens(self._texts, number, chunk.ids, chunk.logprobs, self._odds)

    def _tell(self, part: EventTokens) -> None:
        first = not self._parts
        before = 0.0 if first else self._parts[-1].time
        self._parts.append(part)
        guess, size = self._guess, len(part.tokens)
        judged: list[Verdict]
        drafted = accepted = 0
        provisional = False
        if not guess.by_event:
            judged = ["unknown"] * size
        elif first or guess.speculates is False:
            judged = ["plain"] * size
        else:
            provisional, accepted = True, size - 1
            drafted = max(accepted, guess.drafted)
            judged = verdicts(size, drafted, accepted)
            if not guess.drafted:
                judged[-1] = "unknown"
        emitted = [token.emitted(verdict) for token, verdict in zip(part.tokens, judged, strict=True)]
        self.steps.make(emitted, drafted, accepted, part.time, (part.time - before) * 1000, provisional)

    def _settle(self) -> Settled | None:
        guess, turn, counted = self._guess, self.steps.turn, self.count
        if not self._parts or not guess.by_event or (guess.speculates is False and not counted.told):
            return None
        if not counted.told:
            if not any(step.provisional for step in self.steps.made):
                return None
            note = self._uncounted if self._whole else "An answer that doesn't end comes without the server's count."
            return Settled(turn, (), proved=False, note=note)
        steps, note = self._retold(counted)
        return Settled(turn, tuple(steps), proved=not note, note=note)

    def _retold(self, counted: Count) -> tuple[list[Step], str]:
        """The turn's steps as the server counted them, and a sentence on what its count leaves open (empty for
        nothing)."""
        sizes = [len(part.tokens) for part in self._parts[1:]]
        if counted.order:
            roles = by_order(sizes, counted.order)
            if roles is not None:
                return self._by_roles(roles, counted)
            lengths = by_tokens(sum(sizes), sizes, counted.order)
            if lengths is not None:
                return self._by_lengths(lengths, counted.order), ""
            return self._in_doubt(counted.order), MERGED
        if not counted.rounds:
            return self._by_roles([ALONE] * len(sizes), counted)
        even = counted.drafted is not None and counted.drafted % counted.rounds == 0
        drafted = (counted.drafted or 0) // counted.rounds if even else None
        roles = by_tally(sizes, counted.histogram, drafted) if counted.histogram else None
        if roles is None:
            return self._in_doubt(_any_order(counted)), MERGED
        return self._by_roles(roles, counted)

    def _by_roles(self, roles: Sequence[Role], counted: Count) -> tuple[list[Step], str]:
        """One step per event, judged by its role. Where it stays open which of some single tokens were drafted, as many
        of them as the server counted carry a draft, and all have the verdict ``unknown``."""
        fresh = self._beginning()
        spare = _spare(roles, counted)
        unsure = 0
        for part, role, before in zip(self._parts[1:], roles, self._parts[:-1], strict=True):
            size, spent = len(part.tokens), (part.time - before.time) * 1000
            drafted, accepted = role.drafted, role.accepted
            judged: list[Verdict]
            if drafted is not None and accepted is not None:
                judged = verdicts(size, drafted, accepted)
            elif accepted is not None:
                judged = verdicts(min(size, accepted), accepted, accepted)
                judged += ["unknown"] * (size - len(judged))
                drafted = max(accepted, self._guess.drafted)
            else:
                judged = ["unknown"] * size
                drafted, accepted = (spare.pop(0) if spare else 0), 0
                unsure += 1
            emitted = [token.emitted(verdict) for token, verdict in zip(part.tokens, judged, strict=True)]
            fresh.make(emitted, drafted, accepted, part.time, spent, provisional="unknown" in judged)
        open_ = f"The server's count leaves open which of {unsure} single tokens had a draft before them."
        return fresh.made, open_ if unsure else ""

    def _in_doubt(self, order: Sequence[RoundCount]) -> list[Step]:
        """Steps that add up to the server's totals, although no token's round is known."""
        return self._by_lengths([each.size for each in order], order, doubted=True)

    def _by_lengths(self, lengths: Sequence[int], order: Sequence[RoundCount], doubted: bool = False) -> list[Step]:
        """One step per round, whichever events its tokens arrived in; ``lengths`` are tokens. ``doubted``: no token's
        round is known, so that each verdict is ``unknown``."""
        fresh = self._beginning()
        tokens = [(token, part.time) for part in self._parts[1:] for token in part.tokens]
        before = self._parts[0].time
        place = 0
        rounds = [(length, each.drafted, each.accepted) for length, each in zip(lengths, order, strict=True)]
        rest = len(tokens) - sum(lengths)
        for length, drafted, accepted in [*rounds, *[(1, 0, 0)] * max(rest, 0)]:
            run = tokens[place : place + length]
            place += length
            if not run:
                break
            judged: list[Verdict] = ["unknown"] * len(run) if doubted else verdicts(len(run), drafted, accepted)
            emitted = [token.emitted(verdict) for (token, _), verdict in zip(run, judged, strict=True)]
            time = run[-1][1]
            fresh.make(emitted, drafted, accepted, time, (time - before) * 1000, provisional=doubted)
            before = time
        return fresh.made

    def _beginning(self) -> StepMaker:
        """A new record of the turn that holds its first step alone: the prefill's token."""
        fresh = self.steps.again()
        first = self._parts[0]
        fresh.make([token.emitted("plain") for token in first.tokens], 0, 0, first.time, first.time * 1000)
        return fresh


MOST_ROUNDS = 1 << 16
MERGED = "Events of several rounds arrived as one, so that no token's round is known."


def _any_order(counted: Count) -> list[RoundCount]:
    """Rounds that have the counted acceptance histogram. Their order isn't known: they stand from the fewest accepted
    drafts to the most."""
    rounds = max(sum(counted.histogram), 1)
    even, more = divmod(counted.drafted or 0, rounds)
    kept = [accepted for accepted, times in enumerate(counted.histogram) for _ in range(min(times, MOST_ROUNDS))]
    return [RoundCount(max(even + (place < more), each), each) for place, each in enumerate(kept)]


def _spare(roles: Sequence[Role], counted: Count) -> list[int]:
    """The drafted tokens of every round that accepted nothing, less those of events whose role is that in every way to
    match."""
    if counted.order:
        empty = [each.drafted for each in counted.order if not each.accepted]
        for role in roles:
            if role.accepted == 0 and role.drafted in empty:
                empty.remove(role.drafted)
        return empty
    number = (counted.histogram or (0,))[0] - sum(role.accepted == 0 and role.drafted != 0 for role in roles)
    drafts = (counted.drafted or 0) - sum(role.drafted or 0 for role in roles)
    if number <= 0 or not 0 < drafts <= number * WIDEST:
        return []
    return [drafts // number + (place < drafts % number) for place in range(number)]
