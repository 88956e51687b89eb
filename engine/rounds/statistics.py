"""What is counted of rounds: a turn's costs and what speculation gave. Standard library only. Names follow vLLM and
aiperf."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from ..commands import MAX_BLOCK_SIZE
from ..events import SourceStatistics, TurnStatistics
from .step import DraftSource, Step, sources_in, verified_sources

MAX_DRAFT = MAX_BLOCK_SIZE - 1


class TurnMeter:
    """Collects the steps of one turn. Every figure of ``TurnStatistics`` is defined here."""

    def __init__(self) -> None:
        self.num_tokens = 0
        self.num_steps = 0
        """All of them, the prompt's included."""
        self.num_spec_steps = 0
        self.num_draft_tokens = 0
        self.num_accepted = 0
        self.histogram: list[int] = []
        """Entry k counts the speculative steps that accepted k drafted tokens; as long as the most that were."""
        self.verified: Counter[DraftSource] = Counter()
        """Verified drafts that name who guessed them."""
        self.accepted: Counter[DraftSource] = Counter()
        """Those of them that were accepted."""
        self.first_time = 0.0
        self.last_time = 0.0
        self.tokens_after_first_step = 0

    def add(self, step: Step) -> None:
        """Takes one step, in order."""
        num_emitted = len(step.emitted_columns.ids)
        if self.num_tokens == 0:
            self.first_time = step.time
        else:
            self.tokens_after_first_step += num_emitted
        self.last_time = step.time
        self.num_steps += 1
        self.num_tokens += num_emitted
        if step.draft_columns.ids:
            self._add_speculative(step)

    def _add_speculative(self, step: Step) -> None:
        num_verified = step.num_verified
        kept = min(step.num_accepted, num_verified)
        self.num_spec_steps += 1
        self.num_draft_tokens += num_verified
        self.num_accepted += kept
        if kept >= len(self.histogram):
            self.histogram.extend([0] * (kept + 1 - len(self.histogram)))
        self.histogram[kept] += 1
        sources = verified_sources(step)
        if any(sources):
            self.verified.update(filter(None, sources))
            self.accepted.update(filter(None, sources_in(step)))

    def statistics(self, num_prompt_tokens: int = 0, num_reused_tokens: int = 0) -> TurnStatistics:
        """The figures so far. Decode time runs from the first token to the last."""
        decode_seconds = self.last_time - self.first_time
        return TurnStatistics(
            num_prompt_tokens=num_prompt_tokens,
            num_reused_tokens=num_reused_tokens,
            num_tokens=self.num_tokens,
            num_spec_steps=self.num_spec_steps,
            num_draft_tokens=self.num_draft_tokens,
            num_accepted_draft_tokens=self.num_accepted,
            mean_acceptance_length=1 + self.num_accepted / self.num_spec_steps if self.num_spec_steps else 0.0,
            acceptance_histogram=tuple(self.histogram),
            ttft_ms=self.first_time * 1e3,
            decode_ms=decode_seconds * 1e3,
            tok_s=self.tokens_after_first_step / decode_seconds if decode_seconds > 0 else 0.0,
            by_source=tuple(
                SourceStatistics(source, self.verified[source], self.accepted[source])
                for source in sorted(self.verified)
            ),
            num_rounds=max(self.num_steps - 1, 0),
        )


@dataclass(frozen=True, slots=True)
class PositionRate:
    """How often the draft at one position was accepted, given that every draft before it was."""

    reached: int
    accepted: int

    @property
    def rate(self) -> float | None:
        """The share of drafts that were accepted here, in [0, 1]; None before the position was ever reached."""
        return self.accepted / self.reached if self.reached else None


@dataclass(frozen=True, slots=True)
class AcceptanceStatistics:
    """Acceptance over a turn's speculative rounds, as the engine counts them. Rounds without a draft don't count; a
    draft of which nothing was verified accepted nothing."""

    num_draft_tokens: int = 0
    """Drafted tokens that the target verified."""
    histogram: tuple[int, ...] = (0,) * (MAX_DRAFT + 1)
    """Entry k: rounds that accepted k drafted tokens. Longer where a server drafts more than this engine does."""
    corrected: tuple[int, ...] = (0,) * (MAX_DRAFT + 1)
    """Entry k: those of them in which the target then wrote another token than the draft's next."""

    named: tuple[tuple[DraftSource, int], ...] = ()
    """Accepted tokens that name who guessed them, by source; the drafter guessed the others."""

    @property
    def shares(self) -> tuple[tuple[str, float], ...]:
        """Who guessed what share of the accepted tokens; empty where nobody is named."""
        total = max(self.num_accepted_draft_tokens, 1)
        others = total - sum(count for _, count in self.named)
        by_source = [*(("drafter", others),) * (others > 0), *self.named]
        return tuple((name, count / total) for name, count in by_source) if self.named else ()

    @property
    def num_spec_steps(self) -> int:
        return sum(self.histogram)

    @property
    def num_accepted_draft_tokens(self) -> int:
        return sum(accepted * rounds for accepted, rounds in enumerate(self.histogram))

    @property
    def mean_acceptance_length(self) -> float:
        """(accepted + one) per speculative round; 0 without one."""
        return 1 + self.num_accepted_draft_tokens / self.num_spec_steps if self.num_spec_steps else 0.0

    @property
    def positions(self) -> tuple[PositionRate, ...]:
        """The conditional acceptance curve by draft position. Only a correction is evidence against the next draft: a
        round that ended otherwise is right-censored."""
        accepted = [sum(self.histogram[position:]) for position in range(1, len(self.histogram))]
        return tuple(PositionRate(count + self.corrected[position], count) for position, count in enumerate(accepted))


@dataclass(frozen=True, slots=True)
class RoundCost:
    """Where the milliseconds of a turn's rounds went, all but the first: the prefill yields that one's token."""

    rounds: int = 0
    draft_ms: float | None = 0.0
    """Milliseconds of drafting; None when they are not known of every round."""
    verify_ms: float | None = 0.0
    total_ms: float = 0.0

    @property
    def parts(self) -> tuple[float, float, float] | None:
        """Mean milliseconds per round: draft, verify, and everything else. Zeros before the first round, None when only
        the whole is known."""
        if self.draft_ms is None or self.verify_ms is None:
            return None
        if not self.rounds:
            return 0.0, 0.0, 0.0
        other = max(self.total_ms - self.draft_ms - self.verify_ms, 0.0)
        return self.draft_ms / self.rounds, self.verify_ms / self.rounds, other / self.rounds

    @property
    def mean_ms(self) -> float:
        """Mean milliseconds of a round; 0 before the first."""
        return self.total_ms / self.rounds if self.rounds else 0.0


class OneRowPair(NamedTuple):
    """A pass over one row, and a round with a draft right beside it, in milliseconds."""

    one_row: float
    drafted: float
    rows: int
    """Rows of that round's pass."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """An answer as far as it has come, behind the token that its prompt yields."""

    tokens: int
    drafted: int
    """Rounds with a draft."""
    plain: int
    """Rounds without one: each a pass over one row."""
    rows: float
    """Rows of the passes of rounds with a draft, on average."""
    rest: float = 0.0
    """What a round takes beside what it tells of itself, as a share of that; the target alone takes as much."""
