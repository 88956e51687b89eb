"""Where a tree's rows stand, for attention, sampling and acceptance: row r has its keys and values in slot cursor + r
and the position cursor + its depth, and sees behind the cursor only its ancestors, in order of depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...speculation.trees import Node, path_to
from ..toolchain.jit import MAX_ROWS


@dataclass(frozen=True, slots=True)
class TreeRows:
    """The rows of a tree, int32 on the device. A chain is a tree: row r has depth r, and its ancestors are the rows
    before it."""

    depths: Tensor
    """[16]: 0 for the anchor; never more than the row's number."""
    paths: Tensor
    """[16, 16]: entry (r, d) is the row at depth d on the path to r, up to r's depth; behind that, any row."""
    trunk: Tensor
    """[1]: how many rows, from the anchor's on, have exactly the rows before them as ancestors. The others come
    behind."""

    @classmethod
    def allocate(cls, device: torch.device) -> TreeRows:
        """Allocates rows that form a chain, until ``set_tree`` makes them a tree."""
        rows = torch.arange(MAX_ROWS, dtype=torch.int32, device=device)
        trunk = torch.full((1,), MAX_ROWS, dtype=torch.int32, device=device)
        return cls(rows.clone(), rows.repeat(MAX_ROWS, 1), trunk)

    def set_tree(self, tree: Sequence[Node]) -> None:
        """Sets the rows to a tree's, given in row order (``trees.in_rows``)."""
        depths, paths = list(range(MAX_ROWS)), [list(range(MAX_ROWS)) for _ in range(MAX_ROWS)]
        trunk = 1
        for row in range(1, len(tree) + 1):
            path = path_to(tree, row)
            depths[row] = len(path) - 1
            paths[row][: len(path)] = path
            trunk += path == list(range(row + 1))
        self.depths.copy_(torch.tensor(depths))
        self.paths.copy_(torch.tensor(paths))
        self.trunk.fill_(trunk)
