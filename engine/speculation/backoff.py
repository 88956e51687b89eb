"""Decides whether to draft at all: while drafted rounds yield less than the target alone, the target writes alone, and
now and then one draft is a try. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass, field

from .costs import DEAR_PAUSE, RoundCosts, Yield

RATE_MEMORY = 0.9
"""The factor by which the past fades in the yield of drafted rounds, at each round: about the last ten count."""
TRUST_ROUNDS, TRUST = 8, 1.3
"""An answer begins as if ``TRUST_ROUNDS`` drafted rounds had yielded ``TRUST`` times what plain decoding yields, so
that one bad draft does not end drafting."""
TRY = 1
"""Drafted tokens that a try verifies: enough to see whether drafting may pay again."""
FIRST_PAUSE, LONGEST_PAUSE = 4, 64
"""How many tokens the target writes alone before drafting is tried again, at first and at most; doubled each time it
does not pay."""
TRIES_SHARE = 0.015
"""The share of a rest that goes into tries, once its pauses are as long as they get: where a try costs little, they are
short."""
COMEBACK_ROUNDS, COMEBACK = 3, 1.5
"""A try that pays counts as ``COMEBACK_ROUNDS`` rounds with the yield that it had, at most ``COMEBACK`` times the plain
yield."""


@dataclass(slots=True)
class DraftBackoff:
    """Compares the yield of drafted rounds with that of the target alone, and decides by it. ``costs`` are always those
    at the context length of the round in question."""

    tokens: float = 0.0
    """Tokens of recent drafted rounds; old ones fade."""
    _milliseconds: float = 0.0
    """Milliseconds that those rounds cost; old ones fade, too."""
    _yield: Yield = field(default_factory=Yield)
    is_resting: bool = False
    """Whether drafting has lost of late, so that the next draft is a try."""
    is_trying: bool = False
    """Whether a try is on its way, which verifies its first tokens whatever their chances."""
    _pause: int = 0
    """How many plain rounds are left before the next try."""
    _next_pause: int = FIRST_PAUSE

    def begin(self, costs: RoundCosts, drafts: bool) -> None:
        """Begins an answer; ``drafts``: whether a drafter takes part in it."""
        self.is_resting = self.is_trying = False
        self._pause, self._next_pause = 0, FIRST_PAUSE
        if not drafts:
            self.tokens, self._milliseconds = 1.0, costs.plain
            return
        self._trust(TRUST_ROUNDS, TRUST, costs.round(1), costs.rest)
        if costs.tried(TRY) > TRY and self._yield.loses:
            self._next_pause = DEAR_PAUSE
            self._rest(costs)

    def price(self, costs: RoundCosts) -> float:
        """How many tokens a millisecond is worth: what decoding yields on this text, at least the target's own rate."""
        return max(1 / costs.rest, self.tokens / self._milliseconds)

    def wants_draft(self) -> bool:
        """Whether the coming round may draft. While drafting rests, asking at the end of a pause begins a try."""
        if self._pause or self.is_trying:
            return False
        self.is_trying = self.is_resting
        return True

    def saw_plain_round(self) -> None:
        """Counts a round without a draft."""
        self._pause = max(self._pause - 1, 0)

    def saw_drafted_round(self, tokens: int, round_ms: float, costs: RoundCosts) -> None:
        """Counts what a drafted round yielded, for the whole session."""
        self._yield.observe(tokens, round_ms / costs.rest)

    def judge_try(self, tokens: int, round_ms: float, costs: RoundCosts) -> bool:
        """Judges a try; returns whether the target goes on alone. What went before the try says little about it."""
        times_rest = tokens * costs.rest / round_ms
        self.is_trying, self.is_resting = False, times_rest < 1
        if self.is_resting:
            self._rest(costs)
        else:
            self._trust(COMEBACK_ROUNDS, min(times_rest, COMEBACK), round_ms, costs.rest)
        return self.is_resting

    def book(self, tokens: float, round_ms: float, changed: bool, costs: RoundCosts) -> bool:
        """Enters a drafted round's yield; ``changed``: whether the text has become another. Returns whether drafting
        rests from now on."""
        self.tokens = RATE_MEMORY * self.tokens + tokens
        self._milliseconds = RATE_MEMORY * self._milliseconds + round_ms
        if changed or self.tokens * costs.rest < self._milliseconds:
            self._rest(costs)
        else:
            self._next_pause = max(self._next_pause // 2, FIRST_PAUSE)
        return self.is_resting

    def _trust(self, rounds: int, times_rest: float, round_ms: float, rest_ms: float) -> None:
        """Sets the yield as if ``rounds`` drafted rounds had each yielded ``times_rest`` what the target alone does."""
        self._milliseconds = rounds * round_ms
        self.tokens = times_rest * self._milliseconds / rest_ms

    def _rest(self, costs: RoundCosts) -> None:
        """Begins a rest, with the pause until its first try."""
        self.is_resting = True
        self.tokens, self._milliseconds = 1.0, costs.rest
        longest = min(round((costs.round(costs.tried(TRY)) / costs.rest - 1) / TRIES_SHARE), LONGEST_PAUSE)
        self._pause = min(self._next_pause, max(longest, FIRST_PAUSE))
        self._next_pause = 2 * self._pause
