"""What a policy is asked, what it answers, and what it learns of a round. Standard library only."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from ..events import WidthChoice
from .calibration import Calibration
from .trees import ROWS, Node

Looks = Literal[0, 1, 2]
NOT_AT_ALL: Final = 0
BESIDE: Final = 1
ALONE: Final = 2
"""How drafts are looked up: not at all, beside the drafter's, or in their place."""


UNWEIGHED = WidthChoice(1.0, 0.0, 0.0)
"""Where all of a draft is verified, whatever it costs."""


class Chosen(NamedTuple):
    """The tree to verify, in row order, and what decided how much."""

    tree: list[Node]
    why: WidthChoice | None = None
    """None where nobody chose."""
    looked_up: tuple[float, ...] = ()
    """The chances of a looked up chain, where the tree is as much of it as is worth verifying."""
    beside: tuple[float, ...] = ()
    """The chances of a looked up chain, where it entered the tree beside the drafter's choices."""


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
    """By depth, which of the drafter's choices each looked up token is: ``LookedUpChain.choices``."""
