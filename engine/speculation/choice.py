"""What a policy is asked, what it answers, and what it is told of a round. Standard library only."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from .calibration import Calibration
from .trees import ROWS, Node

Looks = Literal[0, 1, 2]
NOT_AT_ALL: Final = 0
BESIDE: Final = 1
ALONE: Final = 2
"""How to look drafts up: not, beside a drafter's, or in their place."""


class Choice(NamedTuple):
    """How many drafted tokens to verify, and what decided it."""

    num_verified: int
    chance: float = 1.0
    """How likely the first draft left out was to be kept; the last one, when none was left out; 0 without a draft."""
    cost_ms: float = 0.0
    """What verifying that draft adds to the pass; without a draft, what one would add to the round."""
    price: float = 0.0
    """Tokens that a millisecond is worth: what decoding yields on this text."""
    looked_up: tuple[float, ...] = ()
    """Chances of a chain that was looked up, where the tree is what is worth verifying of it."""
    beside: tuple[float, ...] = ()
    """Chances of a chain that was looked up, where it entered the tree."""


Chosen = tuple[list[Node], Choice]
"""The tree to verify, in row order, and why."""


class ChoiceNumbers(NamedTuple):
    """What ``Auto`` chooses by at one context length, for a device that chooses in its place."""

    trying: bool
    """Whether ``TRY`` tokens are verified whatever their chances."""
    price: float
    calibration: Calibration
    others: Calibration
    verify: tuple[float, ...]
    """``RoundCosts.verify``."""
    matches: tuple[float, ...]
    """``MatchCalibration.chances``."""


class Plan(NamedTuple):
    """What is to stand behind a round's drafts; with neither, the target writes one token alone."""

    draft: bool
    lookup: bool = False
    rows: int = ROWS
    """Of the target's pass, at most, where drafts are looked up alone."""

    @property
    def is_wide(self) -> bool:
        return self.rows > ROWS


class Judged(NamedTuple):
    """What a round's text says of the chain that could be looked up before it, whether it was or not."""

    length: int
    """Of the match."""
    num_right: int
    failed: bool
    """Whether the text goes on otherwise behind those."""
    taken: bool = False
    """The chain was what was verified."""
    choices: tuple[int, ...] = ()
    """Where it entered a tree: ``Looked.choices``."""
