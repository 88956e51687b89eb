"""Adds up each row's weighted experts, over many rows. ``index_add_`` has atomic additions, whose rounding changes from
run to run: a prompt would not give the same caches twice."""

from __future__ import annotations

import torch
from torch import Tensor

from ..toolchain.jit import cdiv, jit, tl

COLUMNS = 1024
"""How many columns one program adds up."""


def reference_combine(out: Tensor, by_expert: Tensor, weights: Tensor) -> Tensor:
    """[n, hidden] in out's dtype: pairs times weights, added in fp32 in the order of the choices. ``out`` [n * top_k,
    hidden] is sorted by expert; ``by_expert`` int64 [n * top_k]: the pair row * top_k + choice of each place;
    ``weights`` fp32 [n, top_k]."""
    n, top_k = weights.shape
    slots = places(by_expert).view(n, top_k)
    total = torch.zeros(n, out.shape[1], device=out.device)
    for choice in range(top_k):
        total += out[slots[:, choice]].float() * weights[:, choice, None]
    return total.to(out.dtype)


def combine(out: Tensor, by_expert: Tensor, weights: Tensor) -> Tensor:
    """``reference_combine`` in one kernel that reads every output once."""
    n, top_k = weights.shape
    hidden = out.shape[1]
    total = torch.empty(n, hidden, dtype=out.dtype, device=out.device)
    _combine[(n, cdiv(hidden, COLUMNS))](
        out, places(by_expert), weights.contiguous(), total, HIDDEN=hidden, TOP_K=top_k, COLUMNS=COLUMNS, num_warps=4
    )
    return total


def places(by_expert: Tensor) -> Tensor:
    """The place of each pair, given the pair at each place: the inverse of a permutation, int64 [pairs]."""
    return torch.empty_like(by_expert).scatter_(0, by_expert, torch.arange(len(by_expert), device=by_expert.device))


@jit
def _combine(
    out: tl.tensor,
    slots: tl.tensor,
    weights: tl.tensor,
    total: tl.tensor,
    HIDDEN: tl.constexpr,
    TOP_K: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    """The kernel of ``combine``: a program for each (row, part of its columns)."""
    row = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < HIDDEN
    added = tl.zeros((COLUMNS,), tl.float32)
    for choice in tl.static_range(TOP_K):
        at = tl.load(slots + row * TOP_K + choice)
        value = tl.load(out + at * HIDDEN + column, mask=inside, other=0.0).to(tl.float32)
        added += value * tl.load(weights + row * TOP_K + choice)
    tl.store(total + row * HIDDEN + column, added.to(total.dtype.element_ty), mask=inside)
