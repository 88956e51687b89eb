"""What decoding takes and yields, and the seam between the two ways of running its rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Protocol

from ..commands import NO_DRAFTER, GenerationSettings
from ..errors import Option, WeightsFailure
from ..events import FinishReason, Match, Verdict, WidthChoice
from ..speculation.trees import LOOKED_UP, Chances, Lattice, Node, behind

if TYPE_CHECKING:
    from .decoder import Turn

Poll = Callable[[], GenerationSettings | None]
"""Asked before every round and every piece of the prompt: the settings in force, or None to stop."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The token ids of a prompt, which decoding continues."""

    ids: tuple[int, ...]
    stable_length: int
    """How many of the first ids will stand in the next turn's prompt as well; the generation prompt may not."""


@dataclass(slots=True)
class Round:
    """What one round did, and where that left the turn; times in milliseconds."""

    emitted: tuple[int, ...]
    probabilities: tuple[float, ...]
    """What the target gave each emitted token."""
    verify_width: int
    total_ms: float
    context_length: int
    settings: GenerationSettings
    finish: FinishReason | None
    draft_ids: tuple[int, ...] = ()
    """The drafter's first choice at each position, or the tokens that were looked up."""
    draft_probabilities: tuple[float, ...] = ()
    """The probability that the drafter gave each draft, or the match that led to it."""
    target_probabilities: tuple[float, ...] = ()
    """The target's probability of each draft, up to the first one that differs from its sample."""
    num_accepted: int = 0
    draft_ms: float = 0.0
    verify_ms: float = 0.0
    choice: WidthChoice | None = None
    """Why this many drafted tokens were verified; None where no policy chose."""
    tree: Sequence[Node] = ()
    """Where the tokens stand that were verified, row by row; empty where they are a chain of first choices."""
    tree_ids: tuple[int, ...] = ()
    tree_probabilities: tuple[float, ...] = ()
    """The probability that the drafter gave each token of the tree at its position, or the match that led to it."""
    match: Match | None = None
    """The match by which drafts were looked up, or, in a tree, those that the drafter did not guess."""
    num_agreed: int = 0
    """How many looked up drafts, from the first on, the drafter guessed, too."""
    alone_ms: float | None = None
    """What a pass of one row took here, or takes by the costs that are known; None where none was taken."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One per emitted token: the accepted drafts, then what the target added of its own."""
        own: Verdict = "plain" if self.verify_width < 2 else "corrected" if self._has_refused else "bonus"
        return tuple("accepted" if index < self.num_accepted else own for index in range(len(self.emitted)))

    @property
    def _has_refused(self) -> bool:
        """Whether a verified token stood in the place of the target's own."""
        if not self.tree:
            return self.num_accepted < self.verify_width - 1
        parents = [node.parent for node in self.tree]
        rows = {key: row for row, key in enumerate(zip(parents, self.tree_ids, strict=True), 1)}
        row = 0
        for token in self.emitted[: self.num_accepted]:
            row = rows[row, token]
        return row in parents


class Rounds(Protocol):
    """How the rounds of a turn are run, once its prompt is in the caches and its first token is sampled."""

    @property
    def choices(self) -> int:
        """How many of the drafter's choices at each position a policy may choose from; 1 verifies chains."""

    @property
    def fuses(self) -> bool:
        """Whether one round can draft and look up at once."""

    def run(self, turn: Turn, poll: Poll) -> Iterator[Round]:
        """Yields rounds until one has a ``finish``, or ``poll``, asked before each, says stop."""


def probabilities_of(tree: Sequence[Node], chances: Chances, by_match: Sequence[float]) -> tuple[float, ...]:
    """What each token of a tree was given behind the one before it. ``by_match``: by position, what the match gave
    a looked up token."""
    given = behind(chances, tree)
    return tuple(
        by_match[node.depth - 1] if node.choice == LOOKED_UP else given[node.parent][node.choice] for node in tree
    )


def require_numbers(chances: Chances) -> None:
    """Checks the chances that a drafter gives its choices. Raises ``WeightsFailure`` for one that is no number, which
    only its weights can cause: a policy that chose by such chances would fail elsewhere."""
    off_chain = [row for rows in chances.behind for row in rows] if isinstance(chances, Lattice) else []
    if any(isnan(sum(row)) for row in (*chances, *off_chain)):
        raise WeightsFailure(
            "The drafter computes values that are no numbers (NaN).",
            ("Answer without it: ", Option("drafter", NO_DRAFTER), ". Or download it again."),
        )
