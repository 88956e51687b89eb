"""What speculation gave, counted round by round while a turn runs. Names follow vLLM and aiperf."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from engine.commands import MAX_BLOCK_SIZE
from engine.events import Clock, Source, TurnStatistics

from .series import Beginning
from .speed_up import SpeedUp

MAX_DRAFT = MAX_BLOCK_SIZE - 1
NOT_KNOWN = "not known"
"""Stands wherever the source of an answer didn't tell."""
CLOCKS: dict[Clock, str] = {"engine": "", "server": " by the server's clock", "arrival": " by arrival here"}
"""Words behind a time that say whose clock took it; none for the engine of this process."""


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

    named: tuple[tuple[Source, int], ...] = ()
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


def figures_object(facts: TurnStatistics) -> dict[str, Any]:
    """A turn's figures as JSON: its fields, and the tokens of a round with those counted that had no draft, which
    ``mean_acceptance_length`` leaves out."""
    return {**asdict(facts), "tokens_per_round": facts.tokens_per_round}


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


@dataclass(frozen=True, slots=True)
class Rate:
    """Tokens per second at one moment of a turn."""

    now: float = 0.0
    mean: float = 0.0
    peak: float = 0.0
    history: Beginning = field(default_factory=Beginning)
    """Every ``RateMeter.SAMPLE``, from the first token to that moment."""


@dataclass(frozen=True, slots=True)
class TurnSnapshot:
    """Everything the gauges show: one turn as it stood after one of its rounds."""

    step: int | None = None
    """Index of that round; None before the first."""
    num_tokens: int = 0
    ttft_ms: float | None = None
    """Milliseconds from the question to the first token; None before that came."""
    rate: Rate = field(default_factory=Rate)
    acceptance: AcceptanceStatistics = field(default_factory=AcceptanceStatistics)
    cost: RoundCost = field(default_factory=RoundCost)
    context_length: int = 0
    finished: bool = False
    """Whether the turn had ended, so that its rate is the whole answer's."""
    totals: TurnStatistics | None = None
    """What a server says of the whole answer, where its rounds are not known and don't add up to that."""
    speed_up: SpeedUp | None = None
    """Against the target alone; None where nothing can be said, and for an answer of the target alone."""

    @property
    def tokens_per_round(self) -> float:
        """Tokens of a round, those without a draft counted as well; 0 where no drafts are known."""
        if self.totals is not None:
            return self.totals.tokens_per_round
        return (self.num_tokens - 1) / self.step if self.step and self.acceptance.num_spec_steps else 0.0

    @property
    def alone_ms(self) -> float | None:
        """What a token would have taken the target alone; None where that isn't known."""
        return self.speed_up.times * 1e3 / self.rate.mean if self.speed_up is not None and self.rate.mean else None
