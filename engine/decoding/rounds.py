"""What decoding is told and what it yields, and the seam between the two ways of running its rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..commands import NO_DRAFTER, GenerationSettings
from ..errors import Option, WeightsFailure
from ..events import FinishReason, Verdict
from ..speculation.choice import Choice
from ..speculation.lookup import Found
from ..speculation.trees import Node, is_chain

if TYPE_CHECKING:
    from .decoder import Turn

Poll = Callable[[], GenerationSettings | None]
"""Asked before every round and every piece of the prompt: the settings in force, or None to stop."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids to continue."""

    ids: tuple[int, ...]
    stable_length: int
    """The first so many ids will stand in the next turn's prompt as well; the generation prompt may not."""


@dataclass(frozen=True, slots=True)
class PrefillStarted:
    num_reused: int
    """How many of the prompt's tokens the caches still hold."""


@dataclass(frozen=True, slots=True)
class Prefilled:
    milliseconds: float


class Verified(NamedTuple):
    """A drafted token in the rows of a tree; its row is one more than its index."""

    parent: int
    """Its row; 0 is the anchor's."""
    depth: int
    choice: int
    """0 is the drafter's first at this depth, ``LOOKED_UP`` none of its."""
    id: int
    probability: float
    """What the drafter gave it there, or how likely it was by the match that led to it."""


def verified(tree: Sequence[Node], chances: Sequence[Sequence[float]], tokens: Sequence[int]) -> tuple[Verified, ...]:
    """The rows of a tree behind the anchor's, empty for a chain; ``tokens`` of all rows."""
    return (
        ()
        if is_chain(tree)
        else tuple(
            Verified(node.parent, node.depth, node.choice, tokens[row], chances[node.depth - 1][node.choice])
            for row, node in enumerate(tree, 1)
        )
    )


@dataclass(frozen=True, slots=True)
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
    """The drafter's first choices, or what was looked up."""
    draft_probabilities: tuple[float, ...] = ()
    """What the drafter gave each draft, or how likely it was by the match that led to it."""
    target_probabilities: tuple[float, ...] = ()
    """What the target gave each draft, up to the first that it did not say."""
    num_accepted: int = 0
    draft_ms: float = 0.0
    verify_ms: float = 0.0
    choice: Choice | None = None
    """Why so much of the draft was verified, where a policy chose."""
    tree: tuple[Verified, ...] = ()
    """What was verified, where that is no chain of the first drafts."""
    match: Found | None = None
    """Where the drafts were looked up, or of a tree those that the drafter did not guess."""
    num_agreed: int = 0
    """How many drafts that were looked up, from the first on, the drafter guessed, too."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One per emitted token: the accepted drafts, then what the target added of its own."""
        own: Verdict = "plain" if self.verify_width < 2 else "corrected" if self._has_refused else "bonus"
        return tuple("accepted" if index < self.num_accepted else own for index in range(len(self.emitted)))

    @property
    def _has_refused(self) -> bool:
        """Whether something was verified in the place of the target's own token."""
        if not self.tree:
            return self.num_accepted < self.verify_width - 1
        rows = {(each.parent, each.id): row for row, each in enumerate(self.tree, 1)}
        row = 0
        for token in self.emitted[: self.num_accepted]:
            row = rows[row, token]
        return any(each.parent == row for each in self.tree)


class Rounds(Protocol):
    """How the rounds of a turn are run, once its prompt is in the caches and its first token is sampled."""

    @property
    def choices(self) -> int:
        """Of the drafter's at each position where a policy chooses what to verify; 1 verifies chains."""

    @property
    def fuses(self) -> bool:
        """Whether one of them can draft and look up."""

    def run(self, turn: Turn, poll: Poll) -> Iterator[Round]:
        """Yields rounds until one has a ``finish``, or ``poll``, asked before each, says stop."""


def require_numbers(chances: Iterable[Sequence[float]]) -> None:
    """Chances that a drafter gives its choices. Raises ``WeightsFailure`` for what only its weights can cause: it is
    told at once, since who chooses by such chances would fail elsewhere."""
    if any(isnan(chance) for position in chances for chance in position):
        raise WeightsFailure(
            "The drafter computes values that are no numbers (NaN).",
            ("Answer without it: ", Option("drafter", NO_DRAFTER), ". Or download it again."),
        )
