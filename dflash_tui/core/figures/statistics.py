"""What speculation gave, counted round by round while a turn runs. Names follow vLLM and aiperf."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from engine.events import Clock, TurnStatistics, tokens_per_round
from engine.rounds.statistics import AcceptanceStatistics, RoundCost

from .series import Beginning
from .speed_up import SpeedUp

NOT_KNOWN = "not known"
"""Stands wherever the source of an answer didn't tell."""
CLOCKS: dict[Clock, str] = {"engine": "", "server": " by the server's clock", "arrival": " by arrival here"}
"""Words behind a time that say whose clock took it; none for the engine of this process."""


def figures_object(facts: TurnStatistics) -> dict[str, Any]:
    """A turn's figures as JSON: its fields, and the tokens of a round with those counted that had no draft, which
    ``mean_acceptance_length`` leaves out."""
    return {**asdict(facts), "tokens_per_round": facts.tokens_per_round}


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
        return tokens_per_round(self.num_tokens, self.step or 0) if self.acceptance.num_spec_steps else 0.0

    @property
    def alone_ms(self) -> float | None:
        """What a token would have taken the target alone; None where that isn't known."""
        return self.speed_up.times * 1e3 / self.rate.mean if self.speed_up is not None and self.rate.mean else None
