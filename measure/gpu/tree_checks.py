"""Compares attention of trees of drafts at the real shapes: rows against chains of their ancestors, and by
themselves."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.kernels.decode.attention.attend_rows import AttendScratch, attend_rows, attend_rows_reference
from engine.kernels.reference.rope import inverse_frequencies
from engine.kernels.round.tree_rows import TreeRows
from engine.kernels.shared.heads import HeadNorms
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.lab.bench.shapes import Shape
from engine.layer_config import AttentionConfig
from engine.loading.checkpoint import compute_dtype
from engine.speculation.trees import Node, best_first, in_rows, path_to
from measure.gpu.report import Report

CURSORS = (100, 2040, 2100, 33_000)
"""Cursors that are short, where a tree's rows reach further splits or splits of another size, and where a program has
several splits."""
CPU_CURSORS = (30, 100)
CPU_ERROR = 1e-5
"""Relative difference in the interpreter, where the order of a row's sums depends on its place."""


def check_trees(shape: Shape, device: torch.device, report: Report) -> None:
    """Checks each kind of the target's layers."""
    on_gpu = device.type == "cuda"
    for layer in dict.fromkeys(shape.target.attention):
        for cursor in CURSORS if on_gpu else CPU_CURSORS:
            case = _Case.random(layer, cursor, device)
            name = f"trees, window {layer.window}, {cursor}"
            results = [_Result.of(case, tree) for tree in (_trees() if on_gpu else _trees()[:2])]
            chains, steps = (sum(part) for part in zip(*((r.as_chains, r.as_steps) for r in results), strict=True))
            error = max(result.error for result in results)
            difference = max(result.difference for result in results)
            value = f"error {error:.1e}, rows with other bits than in a chain {chains}, than alone {steps}"
            rounding = CPU_ERROR if case.k.dtype is torch.float32 else 2.0**-8
            same = chains == steps == 0 if on_gpu else difference <= CPU_ERROR
            report.line(name, value, error <= rounding and same)


def _trees() -> list[list[Node]]:
    """Fifteen alternatives, trees deep and broad, some with fewer rows, and a chain."""
    trees = [[Node(0, 1, choice, 0.1) for choice in range(MAX_ROWS - 1)]]
    for seed, rows in enumerate((7, 12, 16, 16, 16, 16)):
        rng = random.Random(seed)
        sure = 0.3 + 0.1 * seed
        chances = [sorted((sure, *(rng.uniform(0, 1 - sure) for _ in range(3))), reverse=True) for _ in range(15)]
        trees.append(in_rows(best_first(chances, rows)))
    return [*trees, [Node(row, row + 1, 0, 0.1) for row in range(MAX_ROWS - 1)]]


@dataclass(frozen=True)
class _Case:
    """A layer with a filled cache, and the projection of 16 rows behind the cursor."""

    layer: AttentionConfig
    cursor: int
    projected: Tensor
    norms: HeadNorms
    frequencies: Tensor
    k: Tensor
    v: Tensor
    scratch: AttendScratch

    @classmethod
    def random(cls, layer: AttentionConfig, cursor: int, device: torch.device) -> _Case:
        dtype = compute_dtype(device)

        def noise(*shape: int, scale: float = 1.0) -> Tensor:
            return torch.randn(shape, device=device, dtype=dtype) * scale

        capacity = cursor + 300 if layer.window is None else layer.window - 1 + 256
        heads = layer.num_heads + (1 if layer.value_is_key else 2) * layer.num_kv_heads
        q, k = (1 + noise(layer.head_dim, scale=0.25) for _ in range(2))
        shape = (layer.num_kv_heads, capacity, layer.head_dim)
        return cls(
            layer,
            cursor,
            noise(MAX_ROWS, heads * layer.head_dim),
            HeadNorms(q, k, 1e-6, rounded_first=False, norm_values=True),
            inverse_frequencies(layer.rope, device),
            noise(*shape, scale=0.25),
            noise(*shape),
            AttendScratch([layer], [capacity], device),
        )

    def attend(self, rows: list[int], first: int = 0, tree: TreeRows | None = None, max_rows: int = MAX_ROWS) -> Tensor:
        """Attention of some of the projection's rows, from ``first`` positions behind the cursor on, [rows, heads *
        head_dim]."""
        out, given = self._out(), self._given(rows, first)
        attend_rows(*given, self.layer, out, self.scratch, max_rows=max_rows, tree=tree)
        return out[: len(rows)]

    def reference(self, rows: list[int], tree: TreeRows) -> Tensor:
        out, apart = self._out(), replace(self, k=self.k.clone(), v=self.v.clone())
        attend_rows_reference(*apart._given(rows, 0), self.layer, out, tree)
        return out[: len(rows)]

    def _out(self) -> Tensor:
        return torch.zeros(
            MAX_ROWS, self.layer.num_heads * self.layer.head_dim, device=self.k.device, dtype=self.k.dtype
        )

    def _given(self, rows: list[int], first: int) -> tuple[Tensor, HeadNorms, Tensor, Tensor, Tensor, Tensor, Tensor]:
        projected = self.projected.clone()
        projected[: len(rows)] = self.projected[rows]
        cursor, count = (
            torch.full((1,), number, dtype=torch.int32, device=self.k.device)
            for number in (self.cursor + first, len(rows))
        )
        return projected, self.norms, self.frequencies, self.k, self.v, cursor, count


@dataclass(frozen=True)
class _Result:
    as_chains: int
    """How many rows have other bits in a chain of their ancestors."""
    as_steps: int
    """How many rows have other bits in a pass by themselves, behind their ancestors."""
    difference: float
    """The largest difference from either."""
    error: float
    """The error relative to the reference."""

    @classmethod
    def of(cls, case: _Case, tree: list[Node]) -> _Result:
        posed = TreeRows.allocate(case.k.device)
        posed.set_tree(tree)
        every = list(range(len(tree) + 1))
        found = case.attend(every, tree=posed)
        expected = case.reference(every, posed).float()
        parents = {node.parent for node in tree}
        paths = [path_to(tree, row) for row in every if row not in parents]
        # A chain leaves its keys where plain decoding would, so that its last row can be run alone behind them.
        chains, steps = [], []
        for path in paths:
            chains.append((found[path], case.attend(path)))
            steps.append((found[path[-1:]], case.attend(path[-1:], len(path) - 1, max_rows=1)))
        as_chains, as_steps = (
            sum(int((one != other).any(1).sum()) for one, other in pairs) for pairs in (chains, steps)
        )
        difference = max(float((one.float() - other.float()).abs().max()) for one, other in (*chains, *steps))
        return cls(as_chains, as_steps, difference, float((found.float() - expected).norm() / expected.norm()))
