"""What rounds need beside ``DeviceRounds`` where drafts are trees, and how the host reads of such a round.

Trees pay where a row costs little: on dense targets. There a round drafts four choices for every position, verifies the
likeliest paths through them in the rows that a chain would fill, and then moves the path that was accepted to where a
chain would have left it. Behind that nothing tells one from the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..kernels.decode.head import HeadOutput
from ..kernels.round.accept import ACCEPTED, EMITTED, ROWS, TARGET_PROBABILITIES, RoundState
from ..kernels.round.accept_tree import CHOICE_PROBABILITIES, DRAFTS, NUMBERS, PARENTS, PATH, AcceptedPath, accept_tree
from ..kernels.round.choices import Choices
from ..kernels.round.grow import grow_tree
from ..kernels.round.move_accepted import RowStores, adopt_rows
from ..kernels.round.sample import SampledRows
from ..kernels.round.tree_rows import TreeRows
from ..kernels.toolchain.jit import MAX_ROWS
from ..kv_cache.cache import Cache
from ..speculation.trees import CHOICES, AutoTrees, Node, best_first, in_rows
from .rounds import Verified

TYPICAL_CHANCES = ((0.6, 0.15, 0.08, 0.05),) * (MAX_ROWS - 1)
"""What a drafter gives its choices where a tree pays: trees of it are timed."""


class DeviceTrees:
    """The tree of the round that runs, on the device."""

    def __init__(self, cache: Cache, features: Tensor, choices: Choices):
        """``cache`` and ``features`` [17, columns]: what the target's pass leaves; ``choices`` are the drafter's."""
        device = features.device
        self.rows = TreeRows.allocate(device)
        self.choices = choices
        self._parents = torch.zeros(MAX_ROWS, dtype=torch.int32, device=device)
        self._path = AcceptedPath.allocate(device)
        self._stores = RowStores(cache.attention, features)

    def grow(self, state: RoundState, numbers: Tensor, scripted: Tensor, ids: Tensor) -> None:
        """Between draft and pass: which of the choices to verify, in which rows."""
        grow_tree(state, numbers, self.choices, scripted, ids, self._parents, self.rows)

    def accept(self, state: RoundState, ids: Tensor, head: HeadOutput, sampled: SampledRows | None) -> None:
        """Behind the pass: the path that the target says, moved to where a chain would stand."""
        accept_tree(state, ids, self.rows, self._parents, self.choices, head, sampled, self._path)
        adopt_rows(self._stores, self._path)

    def pose(self, width: int) -> None:
        """A typical tree of so many rows, to be timed."""
        tree = in_rows(best_first(TYPICAL_CHANCES, width))
        self.rows.pose(tree)
        self._parents[1:width] = torch.tensor([node.parent for node in tree], dtype=torch.int32)


@dataclass(frozen=True, slots=True)
class TreeRecord:
    """What the host reads of a round whose drafts were a tree."""

    chances: tuple[tuple[float, ...], ...]
    """By position, of the drafter's choices."""
    tree: list[Node]
    path: tuple[int, ...]
    """Rows that were accepted."""
    committed: tuple[int, ...]
    """Tokens of the rows that were committed, the anchor's first."""
    verified: tuple[Verified, ...]
    """Empty where it was a chain after all."""
    draft_ids: tuple[int, ...]
    target_probabilities: tuple[float, ...]
    """Of first choices; the last up to one behind the accepted path."""

    @classmethod
    def read(cls, record: Tensor, width: int, drafted: int, policy: AutoTrees) -> TreeRecord:
        """``width`` rows were verified, of ``drafted`` positions."""
        accepted, emitted = int(record[ACCEPTED]), int(record[EMITTED])
        given = reals(record, CHOICE_PROBABILITIES, drafted * CHOICES)
        chances = tuple(given[first : first + CHOICES] for first in range(0, len(given), CHOICES))
        tree = policy.rebuilt(chances, ints(record, PARENTS + 1, width - 1), ints(record, NUMBERS + 1, width - 1))
        tokens, path = ints(record, ROWS, MAX_ROWS), ints(record, PATH, MAX_ROWS)
        judged = min(accepted + 1, width - 1 if _is_chain(tree) else drafted)
        return cls(
            chances=chances,
            tree=tree,
            path=path[1 : accepted + 1],
            committed=tuple(tokens[row] for row in path[:emitted]),
            verified=() if _is_chain(tree) else _verified(tree, chances, tokens),
            draft_ids=ints(record, DRAFTS, drafted),
            target_probabilities=reals(record, TARGET_PROBABILITIES, judged),
        )


def ints(record: Tensor, start: int, count: int) -> tuple[int, ...]:
    return tuple(record[start : start + count].tolist())


def reals(record: Tensor, start: int, count: int) -> tuple[float, ...]:
    """Numbers that a record, int32, holds as fp32."""
    return tuple(record.view(torch.float32)[start : start + count].tolist())


def _is_chain(tree: Sequence[Node]) -> bool:
    return all(node.choice == 0 and node.parent == row for row, node in enumerate(tree))


def _verified(tree: Sequence[Node], chances: Sequence[Sequence[float]], tokens: Sequence[int]) -> tuple[Verified, ...]:
    return tuple(
        Verified(node.parent, node.depth, node.choice, tokens[row], chances[node.depth - 1][node.choice])
        for row, node in enumerate(tree, 1)
    )
