"""Trees of drafts to test kernels with."""

from __future__ import annotations

import random
from dataclasses import fields
from typing import Any, TypeVar

import torch
from torch import Tensor

from engine.kernels.round.lattice import Edges
from engine.kernels.round.tree_rows import TreeRows
from engine.speculation.trees import CHOICES, Lattice, Node, best_first, in_rows

Held = TypeVar("Held")


def copied(held: Held) -> Held:
    """A copy of a dataclass of tensors."""
    values: list[Any] = [getattr(held, field.name) for field in fields(held)]  # type: ignore[arg-type]
    return type(held)(*(value.clone() if isinstance(value, Tensor) else value for value in values))


def drawn_chances(rng: random.Random, positions: int) -> list[list[float]]:
    """By position, chances that share 1, of a drafter that is sure or less so."""
    chances = []
    for _ in range(positions):
        parts = sorted((rng.random() ** rng.choice([1, 8]) for _ in range(CHOICES + 1)), reverse=True)
        chances.append([part / sum(parts) for part in parts[:CHOICES]])
    numbers: list[list[float]] = torch.tensor(chances).tolist()  # as fp32 has them
    return numbers


def drawn_lattice(rng: random.Random, positions: int) -> Lattice:
    """Chances that depend on the token before, some of them equal."""
    noise = torch.Generator().manual_seed(rng.randrange(2**31))
    scores = torch.randn(positions, 16, 16, generator=noise) * rng.choice([1.0, 3.0])
    scores[0] = scores[0, :1]
    scores[:, :, rng.randrange(16)] = scores[:, :, rng.randrange(16)]
    rest = torch.randn(positions, generator=noise) if rng.random() < 0.5 else None
    return Edges(torch.zeros(positions, 16), scores, rest).lattice()


def drawn_tree(rng: random.Random, rows: int) -> list[Node]:
    """Of at most so many rows, no deeper than a chain of these; from steep chains to flat bushes."""
    power = rng.choice([0.1, 1.0, 4.0])
    positions = [sorted((rng.random() ** power / 2 for _ in range(CHOICES)), reverse=True) for _ in range(rows - 1)]
    return in_rows(best_first(positions, rows))


def posed(tree: list[Node]) -> tuple[TreeRows, Tensor]:
    """Its rows, and the row that each follows."""
    rows, parents = TreeRows.allocate(torch.device("cpu")), torch.zeros(16, dtype=torch.int32)
    rows.set_tree(tree)
    parents[1 : len(tree) + 1] = torch.tensor([node.parent for node in tree])
    return rows, parents
