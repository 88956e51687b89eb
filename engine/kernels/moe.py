"""Mixture of experts: choose experts per row, run each chosen expert once over the rows that chose it.

``route`` and ``experts`` define the operation, for any number of rows. The ``*_rows`` functions are kernels for at
most 16: the choice is sorted by expert on the device, each chosen expert is read once, and every (row, choice) pair
has its own place in the results, so that nothing depends on which program comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from .dense import activate, load_weights
from .jit import HAS_TRITON, LAUNCH, MAX_ROWS, cdiv, dot, jit, tl, wait_for_inputs
from .prefill_experts import combine
from .tiles import ROW_TILES, RowTiles, Tiles


def route(scores: Tensor, top_k: int, per_expert_scale: Tensor) -> tuple[Tensor, Tensor]:
    """The experts of each row and their weights.

    ``scores`` fp32 [n, experts]. The softmax runs over all experts, the ``top_k`` largest are renormalised to sum
    to one, then each is multiplied by its expert's own scale. Returns weights fp32 and ids int64, both [n, top_k].
    """
    weights, ids = scores.softmax(dim=-1).topk(top_k, dim=-1)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights * per_expert_scale.float()[ids], ids


def experts(x: Tensor, weights: Tensor, ids: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    """Weighted sum of each row's experts, accumulated in fp32.

    ``x`` [n, hidden]; ``weights``, ``ids`` [n, top_k]; ``gate_up`` [experts, 2 * inter, hidden], the gate's rows
    first; ``down`` [experts, hidden, inter]. Returns [n, hidden] in x's dtype.

    Rows are sorted by expert, so that each touched expert is read once however many rows chose it.
    """
    n, top_k = ids.shape
    chosen, by_expert = ids.flatten().sort(stable=True)
    row = by_expert // top_k
    # Where each expert's rows end. A count by torch.bincount would make the GPU wait for the host.
    ends = torch.searchsorted(chosen, torch.arange(gate_up.shape[0], device=x.device), right=True).to(torch.int32)
    gate, up = F.grouped_mm(x[row], gate_up.mT, offs=ends).chunk(2, dim=-1)
    out = F.grouped_mm(F.gelu(gate, approximate="tanh") * up, down.mT, offs=ends)
    if combines_on(x.device):
        return combine(out, by_expert, weights)
    weighted = out.float() * weights.flatten()[by_expert, None]
    return torch.zeros(n, x.shape[1], device=x.device).index_add_(0, row, weighted).to(x.dtype)


def combines_on(device: torch.device) -> bool:
    """Whether a kernel adds up the rows' experts: on a GPU, where ``index_add_`` would do so in no fixed order."""
    return HAS_TRITON and device.type == "cuda"


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which experts run, and over which rows. Pair ``row * top_k + rank`` is a row's choice number ``rank``."""

    experts: Tensor
    """int32 [experts]: those chosen by any row, in order of their ids, then -1."""
    pairs: Tensor
    """int32 [experts, 16]: the pairs of each of them, by row, then -1."""
    weights: Tensor
    """fp32 [16, top_k]: what each pair counts."""

    @classmethod
    def allocate(cls, num_experts: int, top_k: int, device: torch.device) -> Assignment:
        return cls(
            torch.full((num_experts,), -1, dtype=torch.int32, device=device),
            torch.full((num_experts, MAX_ROWS), -1, dtype=torch.int32, device=device),
            torch.zeros(MAX_ROWS, top_k, device=device),
        )


def reference_assignment(scores: Tensor, top_k: int, per_expert_scale: Tensor) -> Assignment:
    """What ``route_rows`` writes for fp32 scores [n, experts]. Of equal scores the lower expert wins."""
    n, num_experts = scores.shape
    found = Assignment.allocate(num_experts, top_k, scores.device)
    best = scores.sort(dim=-1, descending=True, stable=True)
    ids = best.indices[:, :top_k]
    found.weights[:n] = best.values[:, :top_k].softmax(dim=-1) * per_expert_scale.float()[ids]
    for slot, expert in enumerate(sorted(set(ids.flatten().tolist()))):
        pairs = (ids.flatten() == expert).nonzero().flatten()
        found.experts[slot] = expert
        found.pairs[slot, : len(pairs)] = pairs
    return found


def route_rows(
    scores: Tensor, rows: Tensor, per_expert_scale: Tensor, out: Assignment, tiles: RowTiles = ROW_TILES
) -> None:
    """Fills ``out`` for fp32 scores [16 or fewer, experts], of which int32 ``rows`` [1] count.

    Scores with fewer rows than 16 are repeated: that is for forced routing, when measuring.
    """
    num_experts = scores.shape[1]
    _route[(1,)](
        scores,
        rows,
        per_expert_scale,
        out.experts,
        out.pairs,
        out.weights,
        scores.shape[0],
        EXPERTS=num_experts,
        TOP_K=out.weights.shape[1],
        BLOCK=1 << (num_experts - 1).bit_length(),
        num_warps=tiles.warps,
        **LAUNCH,
    )


def expert_gate_up_rows(
    x: Tensor, gate_up: Tensor, assignment: Assignment, out: Tensor, tiles: Tiles, max_rows: int = MAX_ROWS
) -> None:
    """``out`` [16 * top_k, inter] = gelu(gate) * up of every pair, for rows x [16, hidden]."""
    num_experts, doubled, hidden = gate_up.shape
    inter, top_k = doubled // 2, assignment.weights.shape[1]
    assert x.shape[1] == hidden and out.shape == (MAX_ROWS * top_k, inter)
    _expert_gate_up[_expert_grid(inter, num_experts, top_k, tiles, max_rows)](
        x,
        gate_up,
        assignment.experts,
        assignment.pairs,
        out,
        EXPERTS=num_experts,
        TOP_K=top_k,
        INTER=inter,
        K=hidden,
        BLOCK_N=tiles.columns,
        BLOCK_K=tiles.depth,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
        **LAUNCH,
    )


def expert_down_rows(
    act: Tensor, down: Tensor, assignment: Assignment, out: Tensor, tiles: Tiles, max_rows: int = MAX_ROWS
) -> None:
    """``out`` fp32 [16, top_k, hidden] = what each pair adds to its row: its expert's output times its weight."""
    num_experts, hidden, inter = down.shape
    top_k = assignment.weights.shape[1]
    assert act.shape == (MAX_ROWS * top_k, inter) and out.shape == (MAX_ROWS, top_k, hidden)
    _expert_down[_expert_grid(hidden, num_experts, top_k, tiles, max_rows)](
        act,
        down,
        assignment.experts,
        assignment.pairs,
        assignment.weights,
        out,
        EXPERTS=num_experts,
        N=hidden,
        K=inter,
        BLOCK_N=tiles.columns,
        BLOCK_K=tiles.depth,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
        **LAUNCH,
    )


def _expert_grid(columns: int, num_experts: int, top_k: int, tiles: Tiles, max_rows: int) -> tuple[int]:
    """No more programs than fit on the GPU at once: each takes every so-many-th tile of the experts that run.

    A program for each tile of every expert would start, and end, thousands of programs with nothing to do.
    """
    return (min(tiles.programs, min(num_experts, max_rows * top_k) * cdiv(columns, tiles.columns)),)


@jit
def _route(
    scores: tl.tensor,
    rows: tl.tensor,
    per_expert_scale: tl.tensor,
    experts_out: tl.tensor,
    pairs_out: tl.tensor,
    weights_out: tl.tensor,
    score_rows: tl.tensor,
    EXPERTS: tl.constexpr,
    TOP_K: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    row = tl.arange(0, 16)[:, None]
    expert = tl.arange(0, BLOCK)[None, :]
    wait_for_inputs()
    live = row < tl.load(rows)
    score = tl.load(
        scores + (row % score_rows) * EXPERTS + expert, mask=(expert < EXPERTS) & (row >= 0), other=float("-inf")
    )
    left = score
    peak = tl.max(score, axis=1)[:, None]
    chosen = tl.zeros([16, BLOCK], dtype=tl.int32)
    rank = tl.zeros([16, BLOCK], dtype=tl.int32)
    total = tl.zeros([16, 1], dtype=tl.float32)
    for choice in tl.static_range(TOP_K):
        best = tl.max(left, axis=1)[:, None]
        # Of equal scores the lowest expert, as a stable sort has it.
        index = tl.min(tl.where(left == best, expert, BLOCK), axis=1)[:, None]
        hit = expert == index
        left = tl.where(hit, float("-inf"), left)
        rank = tl.where(hit, choice, rank)
        chosen = tl.where(hit & live, 1, chosen)
        total += tl.exp(best - peak)
    taken = chosen > 0
    # The softmax over all experts, made to sum to one over the chosen, is the softmax over the chosen alone.
    scale = tl.load(per_expert_scale + expert, mask=expert < EXPERTS, other=0.0).to(tl.float32)
    weight = tl.exp(score - peak) / total * scale
    tl.store(weights_out + row * TOP_K + rank, weight, mask=taken)

    used = (tl.sum(chosen, axis=0) > 0).to(tl.int32)[None, :]
    slot = tl.cumsum(used, axis=1) - used
    # Those not used come behind the used ones, so that every slot is written.
    unused_slot = tl.sum(used, axis=1)[:, None] + expert - slot
    place = tl.where(used > 0, slot, unused_slot)
    tl.store(experts_out + place, tl.where(used > 0, expert, -1), mask=expert < EXPERTS)
    below = tl.cumsum(chosen, axis=0) - chosen
    count = tl.sum(chosen, axis=0)[None, :]
    lane = tl.where(taken, below, count + row - below)
    tl.store(
        pairs_out + place * 16 + lane, tl.where(taken, row * TOP_K + rank, -1), mask=(expert < EXPERTS) & (row >= 0)
    )


@jit
def _expert_gate_up(
    x: tl.tensor,
    gate_up: tl.tensor,
    experts: tl.tensor,
    pairs: tl.tensor,
    out: tl.tensor,
    EXPERTS: tl.constexpr,
    TOP_K: tl.constexpr,
    INTER: tl.constexpr,
    K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    tiles: tl.constexpr = (INTER + BLOCK_N - 1) // BLOCK_N
    even: tl.constexpr = K % BLOCK_K == 0
    aligned: tl.constexpr = even and INTER % BLOCK_N == 0
    item = tl.program_id(0)
    wait_for_inputs()
    expert = tl.load(experts + item // tiles)
    while expert >= 0:
        pair = tl.load(pairs + item // tiles * 16 + tl.arange(0, 16))
        live = (pair >= 0)[:, None]
        source = x + tl.maximum(pair, 0)[:, None] // TOP_K * K
        columns = item % tiles * BLOCK_N + tl.arange(0, BLOCK_N)
        weight = gate_up + expert.to(tl.int64) * (2 * INTER * K)
        gate = tl.zeros([16, BLOCK_N], dtype=tl.float32)
        up = tl.zeros([16, BLOCK_N], dtype=tl.float32)
        for step in tl.range(0, K, BLOCK_K):
            at = step + tl.arange(0, BLOCK_K)
            gate_tile = load_weights(weight, columns, at, INTER, K, aligned)
            up_tile = load_weights(weight + INTER * K, columns, at, INTER, K, aligned)
            rows = tl.load(source + at[None, :], mask=live if even else live & (at[None, :] < K), other=0.0)
            gate = dot(rows, gate_tile.T, gate)
            up = dot(rows, up_tile.T, up)
        act = (activate(gate, False) * up).to(out.dtype.element_ty)
        tl.store(out + pair[:, None] * INTER + columns[None, :], act, mask=live & (columns[None, :] < INTER))
        item += tl.num_programs(0)
        expert = tl.load(experts + item // tiles, mask=item < EXPERTS * tiles, other=-1)


@jit
def _expert_down(
    act: tl.tensor,
    down: tl.tensor,
    experts: tl.tensor,
    pairs: tl.tensor,
    weights: tl.tensor,
    out: tl.tensor,
    EXPERTS: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> None:
    tiles: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    even: tl.constexpr = K % BLOCK_K == 0
    aligned: tl.constexpr = even and N % BLOCK_N == 0
    item = tl.program_id(0)
    wait_for_inputs()
    expert = tl.load(experts + item // tiles)
    while expert >= 0:
        pair = tl.load(pairs + item // tiles * 16 + tl.arange(0, 16))
        live = (pair >= 0)[:, None]
        source = act + tl.maximum(pair, 0)[:, None] * K
        columns = item % tiles * BLOCK_N + tl.arange(0, BLOCK_N)
        weight = down + expert.to(tl.int64) * (N * K)
        total = tl.zeros([16, BLOCK_N], dtype=tl.float32)
        for step in tl.range(0, K, BLOCK_K):
            at = step + tl.arange(0, BLOCK_K)
            tile = load_weights(weight, columns, at, N, K, aligned)
            rows = tl.load(source + at[None, :], mask=live if even else live & (at[None, :] < K), other=0.0)
            total = dot(rows, tile.T, total)
        counts = tl.load(weights + tl.maximum(pair, 0))[:, None]
        tl.store(out + pair[:, None] * N + columns[None, :], total * counts, mask=live & (columns[None, :] < N))
        item += tl.num_programs(0)
        expert = tl.load(experts + item // tiles, mask=item < EXPERTS * tiles, other=-1)
