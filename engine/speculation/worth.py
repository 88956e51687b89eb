"""What drafts are worth on this text: the chance that a drafted or looked up token is kept, learned from the rounds
before, and the value of verifying it. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from .calibration import Calibration, MatchCalibration, PooledCalibration
from .choice import LookupOutcome
from .costs import RoundCosts
from .lookup import LONGEST, LookedUpChain
from .trees import (
    LOOKED_UP,
    Chances,
    Lattice,
    LookupBranch,
    Node,
    accepted_path,
    along,
    behind,
)

SURPRISE, LEAST_ODDS = 0.01, 0.2
"""When drafts have failed at their first token round after round, and the odds of that were less than ``SURPRISE``, the
text has changed. (Where a lost draft costs little, the odds must be less.) No single draft counts for less than
``LEAST_ODDS``, however sure the drafter was."""


@dataclass(slots=True)
class DraftWorth:
    """Turns the drafter's confidences and the lengths of matches into chances, and learns from what became of them."""

    first: Calibration = field(default_factory=Calibration)
    """What confidences in first choices are worth."""
    others: Calibration = field(default_factory=PooledCalibration)
    """What confidences in the choices behind the first are worth."""
    matches: MatchCalibration = field(default_factory=MatchCalibration)
    """What looked up tokens are worth, by match length, in this answer."""
    _odds: float = 1.0
    """How likely it was that the drafts of the latest rounds would all fail at their first token, as they did."""
    _before: Calibration = field(default_factory=Calibration)
    """``first`` as it was before those rounds."""

    def begin(self) -> None:
        """Begins an answer: forgets what was learned of the text before; what was learned of the drafter stays."""
        self.matches = MatchCalibration()
        self._odds = 1.0

    def of_choices(self, position: Sequence[float]) -> list[float]:
        """The chances of the drafter's choices at one ``position``, given their confidences there, the likeliest first:
        corrected by what became of such confidences so far, descending, and at most 1 together."""
        chances = [self.first.chance(position[0])]
        for confidence in position[1:]:
            chances.append(max(min(self.others.chance(confidence), chances[-1], 1 - sum(chances)), 0.0))
        return chances

    def of_chances(self, chances: Chances) -> Chances:
        """``of_choices`` of each position, and there behind each token that may come before."""
        if isinstance(chances, Lattice):
            return Lattice.of([[self.of_choices(row) for row in rows] for rows in chances.behind], chances.order)
        return [self.of_choices(position) for position in chances]

    def of_match(self, looked: LookedUpChain, by_drafter: Sequence[float] = ()) -> tuple[float, ...]:
        """The chance of each token of a looked up chain, once it is reached. ``by_drafter``: chances of the drafter's
        own chain, which count where both say the same."""
        chances = [self.matches.chance(min(looked.length + depth, LONGEST)) for depth in range(looked.size)]
        both = zip(chances[: looked.agreed], by_drafter, strict=False)
        return (*(max(pair) for pair in both), *chances[min(looked.agreed, len(by_drafter)) :])

    def lookup_branch(self, looked: LookedUpChain, worths: Chances) -> LookupBranch:
        """Gives the tokens of a looked up chain chances, as a branch for a tree whose drafter's choices have these
        ``worths``."""
        lists = along(worths, looked.candidates)
        parts = enumerate(zip(looked.choices, lists, strict=False), looked.length)
        chances = [self._chance_beside(length, choice, own) for length, (choice, own) in parts]
        return LookupBranch(looked.choices, chances, looked.candidates)

    def _chance_beside(self, length: int, choice: int, worths: Sequence[float]) -> float:
        """The chance of the token behind a match of ``length``, which is this ``choice`` of the drafter's, whose
        chances are ``worths``. A choice that the drafter likes better speaks against it: its chance reduces the odds of
        the match."""
        chance, against = self.matches.chance(min(length, LONGEST)), min(sum(worths[:choice]), 1.0)
        right = chance * (1 - against)
        both = right / (right + (1 - chance) * against) if right else 0.0
        return max((both, *worths[choice : choice + 1]))

    def expected(self, chances: Chances, tree: Sequence[Node], outcome: LookupOutcome | None) -> float:
        """How many tokens a round with this tree is expected to yield, by what is known now (rounds may overlap)."""
        worths = [self.of_choices(given) if given else [] for given in behind(chances, tree)]
        looked_up = [] if outcome is None else accepted_path(tree, outcome.choices)
        chance_of_row = [1.0]
        for row, node in enumerate(tree, 1):
            own = worths[node.parent]
            if outcome is not None and row in looked_up:
                chance = self._chance_beside(outcome.length + node.depth - 1, node.choice, own)
            else:
                chance = own[node.choice]
            chance_of_row.append(chance_of_row[node.parent] * chance)
        return sum(chance_of_row[1:], start=1.0)

    def learn_match(self, outcome: LookupOutcome) -> None:
        """Learns from a round's text how far the chain that could be looked up was right."""
        for depth in range(outcome.num_right + outcome.failed):
            self.matches.observe(outcome.length + depth, depth < outcome.num_right)

    def learn_drafts(self, chances: Chances, tree: Sequence[Node], path: Sequence[int]) -> None:
        """Learns what became of the drafts that were reached; ``path``: the rows that were accepted."""
        given = behind(chances, tree)
        for row, node in enumerate(tree, 1):
            if node.parent in (0, *path) and node.choice < LOOKED_UP:
                calibration = self.others if node.choice else self.first
                calibration.observe(given[node.parent][node.choice], row in path)

    def has_changed(self, confidence: float, begun: bool, loss: float) -> bool:
        """Whether so many drafts in a row failed at their first token that the text must have changed. ``confidence``:
        that of this round's first draft; ``begun``: whether it was kept; ``loss``: what such a round costs, in rounds
        without a draft."""
        if begun:
            self._odds = 1.0
            return False
        if self._odds == 1.0:
            self._before = self.first.copy()
        self._odds *= max(1 - self.first.chance(confidence), LEAST_ODDS)
        return self._odds < SURPRISE * loss

    def restore(self) -> None:
        """Goes back to what was known of first choices before the latest drafts failed: the drafter is what it was, it
        just doesn't suit this text."""
        self.first = self._before

    def count_anew(self) -> None:
        """Forgets the drafts that failed in a row, since the target writes alone for a while."""
        self._odds = 1.0


def worth_by_rows(chances: Sequence[float], costs: RoundCosts, price: float) -> list[float]:
    """What verifying 0, 1, 2, ... of the drafts is worth: tokens expected, less the milliseconds of the pass at
    ``price`` tokens each. ``chances``: the chance of each draft to be reached and kept."""
    tokens = accumulate(chances, initial=1.0)
    return [expected - price * cost for expected, cost in zip(tokens, costs.verify, strict=False)]
