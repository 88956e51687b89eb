"""What a policy is asked, what it answers, and what it learns of a round. Standard library only."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from .calibration import Calibration
from .trees import ROWS, Node

Looks = Literal[0, 1, 2]
NOT_AT_ALL: Final = 0
BESIDE: Final = 1
ALONE: Final = 2
"""How drafts are looked up: not at all, beside the drafter's, or in their place."""


class Choice(NamedTuple):
    """How many drafted tokens to verify, and what decided it."""

    num_verified: int
    chance: float = 1.0
    """The chance to be kept of the first draft that was left out, or of the last one when none was; 0 without a
    draft."""
    cost_ms: float = 0.0
    """Milliseconds that verifying that draft adds to the pass; without a draft, those that one would add to the
    round."""
    price: float = 0.0
    """How many tokens a millisecond is worth: what decoding yields on this text."""
    looked_up: tuple[float, ...] = ()
    """The chances of a looked up chain, where the tree is as much of it as is worth verifying."""
    beside: tuple[float, ...] = ()
    """The chances of a looked up chain, where it entered the tree beside the drafter's choices."""


Chosen = tuple[list[Node], Choice]
"""The tree to verify, in row order, and why."""


class ChoiceNumbers(NamedTuple):
    """The numbers by which ``Auto`` chooses at one context length, for a device that chooses in its place."""

    trying: bool
    """Whether ``TRY`` tokens are verified whatever their chances."""
    price: float
    calibration: Calibration
    others: Calibration
    verify: tuple[float, ...]
    """Milliseconds of a pass over 1, 2, 3, ... rows: ``RoundCosts.verify``."""
    matches: tuple[float, ...]
    """The chance of a looked up token by the length of its match, from 0 on: ``MatchCalibration.chances``."""


class RoundPlan(NamedTuple):
    """Where a round's drafts come from; with neither source, the target writes one token alone."""

    draft: bool
    lookup: bool = False
    rows: int = ROWS
    """The most rows of the target's pass, where drafts are only looked up."""

    @property
    def is_wide(self) -> bool:
        return self.rows > ROWS


class LookupOutcome(NamedTuple):
    """What a round's text says of the chain that could be looked up before it, whether or not it was."""

    length: int
    """How many tokens the match had."""
    num_right: int
    failed: bool
    """Whether the text goes on differently behind the ``num_right`` tokens."""
    taken: bool = False
    """Whether the chain was what was verified."""
    choices: tuple[int, ...] = ()
    """The choices as which it entered a tree: ``LookedUpChain.choices``."""
