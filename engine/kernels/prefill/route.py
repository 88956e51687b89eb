"""Chooses the experts of a prompt's rows, and each (row, choice) pair's place when sorted by expert: three launches
without a wait, instead of softmax, top-k, sort and search. Places follow from counts, so programs may run in any
order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ..toolchain.jit import cdiv, jit, power_of_two, tl

TILE = 32
"""How many rows one program places."""


@dataclass(frozen=True, slots=True)
class Routing:
    """The experts of n rows, and the order of their pairs."""

    ids: Tensor
    """int32 [n, top_k]: each row's experts, best first; of equal scores the lower expert comes first."""
    weights: Tensor
    """fp32 [n, top_k]: the weight of each of these experts' outputs."""
    places: Tensor
    """int32 [n, top_k]: where each pair stands when all pairs are sorted by expert, then by row."""
    ends: Tensor
    """int32 [experts]: where each expert's pairs end."""


def reference_routing(scores: Tensor, top_k: int, per_expert_scale: Tensor | None) -> Routing:
    """The routing by fp32 scores [n, experts], in PyTorch."""
    n, num_experts = scores.shape
    best = scores.sort(dim=-1, descending=True, stable=True)
    ids = best.indices[:, :top_k]
    weights = best.values[:, :top_k].softmax(dim=-1)
    if per_expert_scale is not None:
        weights = weights * per_expert_scale.float()[ids]
    order = ids.flatten().sort(stable=True).indices
    places = torch.empty_like(order).scatter_(0, order, torch.arange(n * top_k, device=order.device))
    ends = torch.bincount(ids.flatten(), minlength=num_experts).cumsum(0)
    return Routing(ids.int(), weights, places.view(n, top_k).int(), ends.int())


def router_scores(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """fp32 scores [n, experts] of rows [n, hidden], weight [experts, hidden] and bias [experts]. Products of two bf16
    numbers are exact in fp32; only their sum is rounded."""
    if x.is_cuda and x.dtype != torch.float32:
        scores: Tensor = torch.mm(x, weight.mT, out_dtype=torch.float32)
        return scores if bias is None else scores.add_(bias)
    return F.linear(x.float(), weight.float(), None if bias is None else bias.float())


def route_many(scores: Tensor, n: int, top_k: int, per_expert_scale: Tensor | None) -> Routing:
    """The routing of ``n`` rows by fp32 scores [n or fewer, experts]. Fewer scores, forced for measuring, are
    repeated."""
    num_experts, device = scores.shape[1], scores.device
    tiles = cdiv(n, TILE)
    ids, places = (torch.empty(n, top_k, dtype=torch.int32, device=device) for _ in range(2))
    weights = torch.empty(n, top_k, device=device)
    counts = torch.empty(tiles, num_experts, dtype=torch.int32, device=device)
    ends = torch.empty(num_experts, dtype=torch.int32, device=device)
    sizes = {"EXPERTS": num_experts, "TOP_K": top_k, "TILE": TILE, "BLOCK": power_of_two(num_experts)}
    assert scores.is_contiguous()
    ranks = power_of_two(top_k)
    _choose_experts[(tiles,)](scores, per_expert_scale, ids, weights, counts, n, scores.shape[0], RANKS=ranks, **sizes)
    _fill_slots[(tiles,)](ids, counts, places, ends, n, **sizes)
    return Routing(ids, weights, places, ends)


@jit
def _choose_experts(
    scores: tl.tensor, per_expert_scale: tl.tensor, ids: tl.tensor, weights: tl.tensor, counts: tl.tensor,
    max_rows: tl.tensor, num_queries: tl.tensor,
    EXPERTS: tl.constexpr, TOP_K: tl.constexpr, RANKS: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each tile of rows. ``max_rows`` is the number of rows, ``num_queries`` that of rows of scores."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    expert = tl.arange(0, BLOCK)[None, :]
    slot = tl.arange(0, RANKS)[None, :]
    live = row < max_rows
    left = tl.load(scores + (row % num_queries) * EXPERTS + expert, mask=(expert < EXPERTS) & live, other=0.0)
    left = tl.where(expert < EXPERTS, left, float("-inf"))
    peak = tl.max(left, axis=1)[:, None]
    taken = tl.zeros([TILE, BLOCK], dtype=tl.int32)
    best_ids = tl.zeros([TILE, RANKS], dtype=tl.int32)
    best_scores = tl.full([TILE, RANKS], float("-inf"), dtype=tl.float32)
    for choice in tl.static_range(TOP_K):
        best = tl.max(left, axis=1)[:, None]
        # NaN scores equal nothing: the last expert then stands for all of them, and no place is out of range.
        index = tl.min(tl.where(left == best, expert, EXPERTS - 1), axis=1)[:, None]
        taken = tl.where(expert == index, 1, taken)
        left = tl.where(expert == index, float("-inf"), left)
        best_ids = tl.where(slot == choice, index, best_ids)
        best_scores = tl.where(slot == choice, best, best_scores)
    # The softmax over all experts, made to sum to one over the chosen, is the softmax over the chosen alone.
    weight = tl.exp(best_scores - peak)
    weight = weight / tl.sum(weight, axis=1)[:, None]
    chosen = (slot < TOP_K) & live
    if per_expert_scale is not None:
        weight *= tl.load(per_expert_scale + best_ids, mask=chosen, other=0.0).to(tl.float32)
    tl.store(ids + row * TOP_K + slot, best_ids, mask=chosen)
    tl.store(weights + row * TOP_K + slot, weight, mask=chosen)
    count = tl.sum(tl.where(live, taken, 0), axis=0)[None, :]
    tl.store(counts + tl.program_id(0) * EXPERTS + expert, count, mask=expert < EXPERTS)


@jit
def _fill_slots(
    ids: tl.tensor,
    counts: tl.tensor,
    places: tl.tensor,
    ends: tl.tensor,
    max_rows: tl.tensor,
    EXPERTS: tl.constexpr,
    TOP_K: tl.constexpr,
    TILE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """A program for each tile of rows: the places of its pairs, behind those of all lower experts and of this
    expert's earlier rows."""
    tile = tl.program_id(0)
    expert = tl.arange(0, BLOCK)[None, :]
    before = tl.zeros([1, BLOCK], dtype=tl.int32)
    total = tl.zeros([1, BLOCK], dtype=tl.int32)
    for first in tl.range(0, tl.num_programs(0), 16):
        other = first + tl.arange(0, 16)[:, None]
        exists = (other < tl.num_programs(0)) & (expert < EXPERTS)
        count = tl.load(counts + other * EXPERTS + expert, mask=exists, other=0)
        total += tl.sum(count, axis=0)[None, :]
        before += tl.sum(tl.where(other < tile, count, 0), axis=0)[None, :]
    end = tl.cumsum(total, axis=1)
    if tile == 0:
        tl.store(ends + expert, end, mask=expert < EXPERTS)
    row = tile * TILE + tl.arange(0, TILE)[:, None]
    live = row < max_rows
    taken = tl.zeros([TILE, BLOCK], dtype=tl.int32)
    for choice in tl.static_range(TOP_K):
        taken = tl.where(expert == tl.load(ids + row * TOP_K + choice, mask=live, other=-1), 1, taken)
    slot = end - total + before + tl.cumsum(taken, axis=0) - taken
    for choice in tl.static_range(TOP_K):
        chosen = expert == tl.load(ids + row * TOP_K + choice, mask=live, other=-1)
        tl.store(places + row * TOP_K + choice, tl.sum(tl.where(chosen, slot, 0), axis=1)[:, None], mask=live)
