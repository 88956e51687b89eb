"""Trees of drafts to test kernels with."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from engine.kernels.tree_rows import TreeRows
from engine.trees import CHOICES, Node, best_first, in_rows


def drawn_tree(rng: random.Random, rows: int) -> list[Node]:
    """Of at most so many rows, no deeper than a chain of these; from steep chains to flat bushes."""
    power = rng.choice([0.1, 1.0, 4.0])
    positions = [sorted((rng.random() ** power / 2 for _ in range(CHOICES)), reverse=True) for _ in range(rows - 1)]
    return in_rows(best_first(positions, rows))


def posed(tree: list[Node]) -> tuple[TreeRows, Tensor]:
    """Its rows, and the row that each follows."""
    rows, parents = TreeRows.allocate(torch.device("cpu")), torch.zeros(16, dtype=torch.int32)
    rows.pose(tree)
    parents[1 : len(tree) + 1] = torch.tensor([node.parent for node in tree])
    return rows, parents
