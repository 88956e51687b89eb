"""First launch of a layer's feed-forward part, at most 16 rows of a model with experts: gate and up of the dense MLP
beside the router's scores, whose last program chooses the experts. Choices are sorted by expert, so each is read
once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ....layer_config import Activation
from ...shared.activation import activate
from ...toolchain.early_launch import early_kernel, wait_for_inputs
from ...toolchain.jit import HAS_TRITON, MAX_ROWS, cdiv, jit, power_of_two, tl
from ...weights import plain
from ...weights.matrix import FP8, Matrix, scaled
from ...weights.weight import Weight
from ..products.dense import begin_gate_up, gate_up_tile, multiply_rows
from ..products.packed import height_of
from ..products.prefetch import prefetch
from ..products.tile_shape import depth_of_split, length_of
from ..tiling.tiles import Tiles

PLAIN = tl.constexpr(plain.PLAIN) if HAS_TRITON else None
LOWEST = tl.constexpr(-(2**31)) if HAS_TRITON else None


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which experts run, and over which rows. Pair ``row * top_k + rank`` is a row's choice number ``rank``."""

    experts: Tensor
    """int32 [entries]: those chosen by any row, in order of their ids, then -1; a row's alone in order of rank."""
    pairs: Tensor
    """int32 [entries, 16]: the pairs of each entry, by row, then -1. Behind the last entry anything may stand; it is -1
    where no expert has a pair."""
    weights: Tensor
    """fp32 [16, top_k]: the factor of each pair's output."""
    most: int = MAX_ROWS
    """The most pairs of an entry, 8 or 16: an expert with more has two entries, one behind the other."""

    @classmethod
    def allocate(cls, num_experts: int, top_k: int, device: torch.device, most: int = MAX_ROWS) -> Assignment:
        entries = entries_of(num_experts, top_k, most)
        return cls(
            torch.full((entries,), -1, dtype=torch.int32, device=device),
            torch.full((entries, MAX_ROWS), -1, dtype=torch.int32, device=device),
            torch.zeros(MAX_ROWS, top_k, device=device),
            most,
        )

    def to(self, device: torch.device) -> Assignment:
        return Assignment(self.experts.to(device), self.pairs.to(device), self.weights.to(device), self.most)


def entries_of(num_experts: int, top_k: int, most: int) -> int:
    """The most entries that an assignment can have, and at least one for each expert: every ``most`` pairs may make one
    entry more, but each entry has a pair."""
    pairs = MAX_ROWS * top_k
    return num_experts if most == MAX_ROWS else max(num_experts, min(num_experts + pairs // most, pairs))


def reference_assignment(
    scores: Tensor, top_k: int, per_expert_scale: Tensor | None = None, most: int = MAX_ROWS
) -> Assignment:
    """What routing writes for fp32 scores [n, experts], where ``max_rows`` is n. Of equal scores the lower expert
    wins."""
    n, num_experts = scores.shape
    assignment = Assignment.allocate(num_experts, top_k, scores.device, most)
    best = scores.sort(dim=-1, descending=True, stable=True)
    ids = best.indices[:, :top_k]
    weights = best.values[:, :top_k].softmax(dim=-1)
    assignment.weights[:n] = weights if per_expert_scale is None else weights * per_expert_scale.float()[ids]
    chosen = ids.flatten().tolist()
    slot = 0
    for expert in chosen if n == 1 else sorted(set(chosen)):
        for pairs in (ids.flatten() == expert).nonzero().flatten().split(most):
            assignment.experts[slot] = expert
            assignment.pairs[slot, : len(pairs)] = pairs
            slot += 1
    return assignment


@dataclass(frozen=True, slots=True)
class RouterRows:
    """A router, its inputs, and where its choice goes."""

    x: Tensor
    """[16, hidden], normed and scaled for the router."""
    weight: Tensor
    """[experts, hidden]: the router's own weight."""
    per_expert_scale: Tensor | None
    """[experts], or None where experts have none."""
    forced: Tensor | None
    """For measuring: fp32 scores [n, experts] that decide instead of the router's, row by row and over again."""
    rows: Tensor
    """int32 [1]: how many of the 16 rows count."""
    assignment: Assignment
    tiles: Tiles
    """Tiles of the router's product: columns, depth and splits count; warps and stages are the launch's own."""
    bias: Tensor | None = None
    """[experts], added to the scores; not to forced ones."""


@dataclass(frozen=True, slots=True)
class SplitScratch:
    """Where the router's splits of one launch of ``gate_up_and_route`` meet."""

    scores: Tensor
    """fp32 [splits, 16, experts]: the sum over the first dimension, in order, is the router's score."""
    arrived: Tensor
    """int32 [1], zero between launches: how many of the router's programs are done."""

    @classmethod
    def allocate(cls, tiles: Tiles, num_experts: int, device: torch.device) -> SplitScratch:
        return cls(
            torch.zeros(tiles.splits, MAX_ROWS, num_experts, device=device),
            torch.zeros(1, dtype=torch.int32, device=device),
        )


def gate_up_and_route(
    x: Tensor,
    weight: Weight,
    out: Tensor,
    tiles: Tiles,
    router: RouterRows,
    scratch: SplitScratch,
    max_rows: int = MAX_ROWS,
    activation: Activation = "gelu_tanh",
) -> None:
    """``dense.gate_up`` into ``out`` [16, inter], and the router's choice into ``router.assignment``. Its depth is
    split; the last program adds all splits in order, since choosing needs every score."""
    inter, depth = weight.shape[0] // 2, weight.shape[1]
    num_experts = router.weight.shape[0]
    assert x.shape[1] == depth and out.shape[1] == inter and router.x.shape[1] == depth
    assert x.is_contiguous() and weight.is_contiguous and out.is_contiguous()
    assert router.forced is None or router.forced.is_contiguous()
    router_programs = cdiv(num_experts, router.tiles.columns) * router.tiles.splits
    _gate_up_and_route[(router_programs + cdiv(inter, tiles.columns),)](
        x,
        weight.values,
        weight.scales,
        out,
        router.x,
        router.weight,
        router.bias,
        router.forced,
        0 if router.forced is None else router.forced.shape[0],
        router.rows,
        router.per_expert_scale,
        router.assignment.experts,
        router.assignment.pairs,
        router.assignment.weights,
        scratch.scores,
        scratch.arrived,
        max_rows,
        INTER=inter,
        K=depth,
        FORMAT=weight.format,
        SILU=activation == "silu",
        EXPERTS=num_experts,
        TOP_K=router.assignment.weights.shape[1],
        ROWS=min(tiles.warps, MAX_ROWS) if max_rows == 1 else MAX_ROWS,
        ALONE=max_rows == 1,
        BLOCK=power_of_two(num_experts),
        ENTRIES=len(router.assignment.experts),
        MOST=router.assignment.most,
        BLOCK_N=tiles.columns,
        BLOCK_K=tiles.depth,
        ROUTER_SPLITS=router.tiles.splits,
        ROUTER_BLOCK_N=router.tiles.columns,
        ROUTER_BLOCK_K=router.tiles.depth,
        PARTS=tiles.warps,
        AHEAD=tiles.ahead,
        EARLY=tiles.early or 0,
        TURNED=tiles.turned,
        HEIGHT=height_of(weight, max_rows),
        **tiles.options,
    )


def route_rows(router: RouterRows, scratch: SplitScratch, max_rows: int = MAX_ROWS) -> None:
    """The router's choice alone, for layers without a dense MLP beside it. Warps and stages are those of its tiles."""
    num_experts, depth = router.weight.shape
    tiles, assignment = router.tiles, router.assignment
    assert router.x.shape[1] == depth and (router.forced is None or router.forced.is_contiguous())
    _route[(cdiv(num_experts, tiles.columns) * tiles.splits,)](
        router.x, router.weight, router.bias, router.forced,
        0 if router.forced is None else router.forced.shape[0], router.rows, router.per_expert_scale,
        assignment.experts, assignment.pairs, assignment.weights, scratch.scores, scratch.arrived, max_rows,
        K=depth, EXPERTS=num_experts, TOP_K=assignment.weights.shape[1],
        ROWS=min(tiles.warps, MAX_ROWS) if max_rows == 1 else MAX_ROWS, ALONE=max_rows == 1,
        BLOCK=power_of_two(num_experts), ENTRIES=len(assignment.experts), MOST=assignment.most, SPLITS=tiles.splits,
        BLOCK_N=tiles.columns, BLOCK_K=tiles.depth,
        AHEAD=tiles.ahead, **tiles.options,
    )  # fmt: skip


@jit
def fresh(pointers: tl.tensor, mask: tl.tensor) -> tl.tensor:
    """Loads what other programs of this launch wrote: it is in L2, and nowhere nearer."""
    return tl.load(pointers, mask=mask, other=0.0, cache_modifier=".cg")


@jit
def last_to_arrive(counter: tl.tensor, COUNT: tl.constexpr) -> tl.tensor:
    """Whether this program is the last of COUNT to arrive. It then sees what the others wrote before."""
    tl.debug_barrier()  # all threads have stored before one of them says so
    last = tl.atomic_add(counter, 1, sem="acq_rel") == COUNT - 1
    if last:
        tl.store(counter, 0)
    return last


@jit
def _count_bits(bits: tl.tensor) -> tl.tensor:
    bits -= (bits >> 1) & 0x5555
    bits = (bits & 0x3333) + ((bits >> 2) & 0x3333)
    bits = (bits + (bits >> 4)) & 0x0F0F
    return (bits + (bits >> 8)) & 0x1F


@jit
def _choose_experts(
    scores: tl.tensor, bias: tl.tensor, forced: tl.tensor, forced_rows: tl.tensor, rows: tl.tensor,
    per_expert_scale: tl.tensor, experts_out: tl.tensor, pairs_out: tl.tensor, weights_out: tl.tensor,
    EXPERTS: tl.constexpr, TOP_K: tl.constexpr, ROWS: tl.constexpr, ALONE: tl.constexpr, BLOCK: tl.constexpr,
    ENTRIES: tl.constexpr, MOST: tl.constexpr, SPLITS: tl.constexpr,
) -> None:  # fmt: skip
    """One program writes the assignment of the first ROWS rows (ALONE: one), ``rows`` of which count. With as many rows
    as warps, a warp finds the best of a row by itself."""
    row = tl.arange(0, ROWS)[:, None]
    expert = tl.arange(0, BLOCK)[None, :]
    exists = (expert < EXPERTS) & (row >= 0)
    if ALONE:  # the place in the list is the rank, and all but the experts is known before the scores
        lane = tl.arange(0, 16)[None, :]
        slot = tl.arange(0, power_of_two(TOP_K))[:, None]
        tl.store(pairs_out + slot * 16 + lane, tl.where(lane == 0, slot, -1), mask=slot < TOP_K)
        entry = tl.arange(0, power_of_two(ENTRIES))[None, :]
        tl.store(experts_out + entry, -1, mask=(entry >= TOP_K) & (entry < ENTRIES))
    live = row < (tl.minimum(tl.load(rows), 1) if ALONE else tl.load(rows))
    if forced is None:
        score = fresh(scores + row * EXPERTS + expert, exists)
        for split in tl.static_range(1, SPLITS):
            score += fresh(scores + (split * 16 + row) * EXPERTS + expert, exists)
        if bias is not None:
            score += tl.load(bias + expert, mask=expert < EXPERTS, other=0.0).to(tl.float32)
    else:
        score = tl.load(forced + (row % forced_rows) * EXPERTS + expert, mask=exists, other=0.0)
    score = tl.where(exists, score, float("-inf"))
    if per_expert_scale is not None:
        scale = tl.load(per_expert_scale + expert, mask=expert < EXPERTS, other=0.0).to(tl.float32)
    # Integers in the order of the scores, since a GPU finds the highest of 32 integers in one instruction. Adding zero
    # makes -0 into 0, which it equals; flipping the bits of negative floats puts them in order.
    bits = (score + 0.0).to(tl.int32, bitcast=True)
    key = tl.where(exists, bits ^ ((bits >> 31) & 0x7FFFFFFF), LOWEST)
    peak = tl.max(score, axis=1)[:, None]
    rank = tl.full([ROWS, BLOCK], -1, dtype=tl.int32)
    total = tl.zeros([ROWS, 1], dtype=tl.float32)
    for choice in range(TOP_K):  # not unrolled: code that runs once is fetched as slowly as it is long
        best = tl.max(key, axis=1)[:, None]
        chosen = tl.min(tl.where(key == best, expert, BLOCK), axis=1)[:, None]  # the lowest of equals
        hit = expert == chosen
        key = tl.where(hit, LOWEST, key)
        rank = tl.where(hit, choice, rank)
        best_score = (best ^ ((best >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
        total += tl.exp(best_score - peak)
    taken = (rank >= 0) & live
    # The softmax over all experts, made to sum to one over the chosen, is the softmax over the chosen alone.
    weight = tl.exp(score - peak) / total
    if per_expert_scale is not None:
        weight *= scale
    tl.store(weights_out + row * TOP_K + rank, weight, mask=taken)

    if ALONE:
        tl.store(experts_out + rank, tl.where(live, expert, -1), mask=(rank >= 0) & (row == 0))
    else:
        choosers = tl.sum(tl.where(taken, 1 << row, 0), axis=0)[None, :]  # a bit for each row
        below = _count_bits(choosers & ((1 << row) - 1))
        lane = tl.where(taken, below, _count_bits(choosers) + row - below)  # those that didn't choose it stand behind
        pair = tl.where(taken, row * TOP_K + rank, -1)
        if MOST == 16:
            used = (choosers > 0).to(tl.int32)
            slot = tl.cumsum(used, axis=1) - used
            # Those not used come behind the used ones, so that every slot is written.
            unused_slot = tl.sum(used, axis=1)[:, None] + expert - slot
            target_slot = tl.where(used > 0, slot, unused_slot)
            tl.store(experts_out + target_slot, tl.where(used > 0, expert, -1), mask=expert < EXPERTS)
            tl.store(pairs_out + target_slot * 16 + lane, pair, mask=exists)
        else:
            entries = (_count_bits(choosers) + (MOST - 1)) // MOST
            slot = tl.cumsum(entries, axis=1) - entries
            entry = tl.arange(0, power_of_two(ENTRIES))[None, :]
            unused = (entry >= tl.sum(entries, axis=1)[:, None]) & (entry < ENTRIES)
            tl.store(experts_out + entry, -1, mask=unused)
            for more in tl.static_range(16 // MOST):
                tl.store(experts_out + slot + more, expert, mask=more < entries)
            target_slot = (slot + lane // MOST) * 16 + lane % MOST
            tl.store(pairs_out + target_slot, pair, mask=exists & (lane < entries * MOST))


@jit
def _ask_for_router(
    program: tl.tensor, weight: tl.tensor, asks: tl.tensor, EXPERTS: tl.constexpr, K: tl.constexpr,
    SPLITS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
) -> None:  # fmt: skip
    """Prefetches into L2 what one of the router's programs reads of its weight; no more than the first step where the
    depth has no splits."""
    tiles: tl.constexpr = (EXPERTS + BLOCK_N - 1) // BLOCK_N
    depth: tl.constexpr = depth_of_split(K, BLOCK_K, SPLITS)
    prefetch(
        Matrix(weight, None, EXPERTS, K, PLAIN), 0, program % tiles * BLOCK_N, program // tiles * depth, asks, BLOCK_N,
        BLOCK_K, depth // BLOCK_K,
    )  # fmt: skip


@jit
def _route_tile(
    program: tl.tensor, router_x: tl.tensor, router_weight: tl.tensor, bias: tl.tensor, forced: tl.tensor,
    forced_rows: tl.tensor, rows: tl.tensor, per_expert_scale: tl.tensor, experts_out: tl.tensor, pairs_out: tl.tensor,
    weights_out: tl.tensor, scores: tl.tensor, arrived: tl.tensor, max_rows: tl.tensor,
    K: tl.constexpr, EXPERTS: tl.constexpr, TOP_K: tl.constexpr, ROWS: tl.constexpr, ALONE: tl.constexpr,
    BLOCK: tl.constexpr, ENTRIES: tl.constexpr, MOST: tl.constexpr, ROUTER_SPLITS: tl.constexpr,
    ROUTER_BLOCK_N: tl.constexpr, ROUTER_BLOCK_K: tl.constexpr, AHEAD: tl.constexpr,
) -> None:  # fmt: skip
    """The work of one of the router's programs; the last one to finish chooses."""
    row = tl.arange(0, 16)[:, None]
    router_tiles: tl.constexpr = (EXPERTS + ROUTER_BLOCK_N - 1) // ROUTER_BLOCK_N
    router_depth: tl.constexpr = depth_of_split(K, ROUTER_BLOCK_K, ROUTER_SPLITS)
    columns = program % router_tiles * ROUTER_BLOCK_N + tl.arange(0, ROUTER_BLOCK_N)
    split = program // router_tiles
    start = split * router_depth
    total = multiply_rows(
        router_x, Matrix(router_weight, None, EXPERTS, K, PLAIN), columns, start, max_rows, router_depth,
        ROUTER_BLOCK_N, ROUTER_BLOCK_K, AHEAD, ROUTER_SPLITS,
    )  # fmt: skip
    mask = (row < max_rows) & (columns[None, :] < EXPERTS)
    tl.store(scores + (split * 16 + row) * EXPERTS + columns[None, :], total, mask=mask)
    if last_to_arrive(arrived, router_tiles * ROUTER_SPLITS):
        _choose_experts(
            scores, bias, forced, forced_rows, rows, per_expert_scale, experts_out, pairs_out, weights_out, EXPERTS,
            TOP_K, ROWS, ALONE, BLOCK, ENTRIES, MOST, ROUTER_SPLITS,
        )  # fmt: skip


@early_kernel
def _gate_up_and_route(
    x: tl.tensor, weight: tl.tensor, scales: tl.tensor, out: tl.tensor, router_x: tl.tensor, router_weight: tl.tensor,
    bias: tl.tensor, forced: tl.tensor, forced_rows: tl.tensor, rows: tl.tensor, per_expert_scale: tl.tensor,
    experts_out: tl.tensor, pairs_out: tl.tensor, weights_out: tl.tensor, scores: tl.tensor, arrived: tl.tensor,
    max_rows: tl.tensor,
    INTER: tl.constexpr, K: tl.constexpr, FORMAT: tl.constexpr, SILU: tl.constexpr, EXPERTS: tl.constexpr,
    TOP_K: tl.constexpr, ROWS: tl.constexpr, ALONE: tl.constexpr, BLOCK: tl.constexpr, ENTRIES: tl.constexpr,
    MOST: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, ROUTER_SPLITS: tl.constexpr,
    ROUTER_BLOCK_N: tl.constexpr, ROUTER_BLOCK_K: tl.constexpr, PARTS: tl.constexpr, AHEAD: tl.constexpr,
    EARLY: tl.constexpr, TURNED: tl.constexpr, HEIGHT: tl.constexpr,
) -> None:  # fmt: skip
    # The router's programs come first, so that the choice is made while the others are still reading.
    router_tiles: tl.constexpr = (EXPERTS + ROUTER_BLOCK_N - 1) // ROUTER_BLOCK_N
    router_programs: tl.constexpr = router_tiles * ROUTER_SPLITS
    program = tl.program_id(0)
    _ask_for_router(
        tl.minimum(program, router_programs - 1), router_weight, program < router_programs, EXPERTS, K, ROUTER_SPLITS,
        ROUTER_BLOCK_N, ROUTER_BLOCK_K,
    )  # fmt: skip
    words = begin_gate_up(
        Matrix(weight, scales, 2 * INTER, K, FORMAT), tl.maximum(program - router_programs, 0) * BLOCK_N,
        program >= router_programs, BLOCK_N, BLOCK_K, PARTS, AHEAD, TURNED, EARLY, INTER,
    )  # fmt: skip
    wait_for_inputs()
    row = tl.arange(0, HEIGHT)[:, None]
    if program < router_programs:
        _route_tile(
            program, router_x, router_weight, bias, forced, forced_rows, rows, per_expert_scale, experts_out, pairs_out,
            weights_out, scores, arrived, max_rows, K, EXPERTS, TOP_K, ROWS, ALONE, BLOCK, ENTRIES, MOST, ROUTER_SPLITS,
            ROUTER_BLOCK_N, ROUTER_BLOCK_K, AHEAD,
        )  # fmt: skip
    else:
        depth: tl.constexpr = length_of(K, BLOCK_K)
        first = (program - router_programs) * BLOCK_N
        places = first + tl.arange(0, BLOCK_N)
        if FORMAT >= FP8:
            gate, up = gate_up_tile(
                x, Matrix(weight, scales, 2 * INTER, K, FORMAT), first, max_rows, words, BLOCK_N, BLOCK_K, PARTS, AHEAD,
                TURNED, INTER, HEIGHT,
            )  # fmt: skip
        else:
            # Rows of gate and up alternate in one tile, so that both products lie in one thread.
            lane = tl.arange(0, 2 * BLOCK_N)
            paired = first + lane // 2 + lane % 2 * INTER
            both = multiply_rows(
                x, Matrix(weight, scales, 2 * INTER, K, FORMAT), paired, 0, max_rows, depth, 2 * BLOCK_N, BLOCK_K,
                AHEAD, 1, first, TURNED,
            )  # fmt: skip
            both = scaled(both, Matrix(weight, scales, 2 * INTER, K, FORMAT), 0, paired)
            gate, up = tl.split(tl.reshape(both, [16, BLOCK_N, 2]))
        act = activate(gate, SILU) * up
        valid = (row < max_rows) & (places[None, :] < INTER)
        tl.store(out + row * INTER + places[None, :], act.to(out.dtype.element_ty), mask=valid)


@early_kernel
def _route(
    router_x: tl.tensor, router_weight: tl.tensor, bias: tl.tensor, forced: tl.tensor, forced_rows: tl.tensor,
    rows: tl.tensor, per_expert_scale: tl.tensor, experts_out: tl.tensor, pairs_out: tl.tensor, weights_out: tl.tensor,
    scores: tl.tensor, arrived: tl.tensor, max_rows: tl.tensor,
    K: tl.constexpr, EXPERTS: tl.constexpr, TOP_K: tl.constexpr, ROWS: tl.constexpr, ALONE: tl.constexpr,
    BLOCK: tl.constexpr, ENTRIES: tl.constexpr, MOST: tl.constexpr, SPLITS: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, AHEAD: tl.constexpr,
) -> None:  # fmt: skip
    _ask_for_router(tl.program_id(0), router_weight, True, EXPERTS, K, SPLITS, BLOCK_N, BLOCK_K)
    wait_for_inputs()
    _route_tile(
        tl.program_id(0), router_x, router_weight, bias, forced, forced_rows, rows, per_expert_scale, experts_out,
        pairs_out, weights_out, scores, arrived, max_rows, K, EXPERTS, TOP_K, ROWS, ALONE, BLOCK, ENTRIES, MOST, SPLITS,
        BLOCK_N, BLOCK_K, AHEAD,
    )  # fmt: skip
