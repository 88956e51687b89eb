"""Each kernel of a round alone, at the shapes of a pair: what it reads, and how to launch it with any tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import torch
from torch import Tensor

from ....commands import WeightFormat
from ....kernels.decode.attend_tiles import AttendTiles, attend_tiles
from ....kernels.decode.attention import AttendScratch, attend_rows
from ....kernels.decode.dense import gate_up, partial_sums, project
from ....kernels.decode.experts import DenseDown, expert_down_rows, expert_gate_up_rows
from ....kernels.decode.head import HeadOutput, head_rows, pick_rows
from ....kernels.decode.router import (
    Assignment,
    RouterRows,
    SplitScratch,
    gate_up_and_route,
    reference_assignment,
    route_rows,
)
from ....kernels.decode.target_tiles import plain_choices, target_tiles
from ....kernels.decode.tiles import ROW_TILES, RowTiles, TargetTiles, Tiles, draft_tiles
from ....kernels.prefill.attention import ChunkTiles, chunk_attention, chunk_tiles
from ....kernels.reference.rope import inverse_frequencies
from ....kernels.shared.heads import HeadNorms
from ....kernels.toolchain.card import Card
from ....kernels.toolchain.jit import MAX_ROWS
from ....kernels.weights.int8 import Int8Weight
from ....kernels.weights.kinds import MAKERS
from ....kernels.weights.plain import PlainWeight
from ....layer_config import Activation, AttentionConfig, MoeConfig
from ....models.dflash.config import DFlashConfig
from ....models.family import TargetConfig
from ..routing import Routing, forced_scores
from ..shapes import Shape
from ..weights import Packing, noise
from .case import Case, Launch, at_rows, rows_of
from .norm_cases import norm_cases

ROTATED_BYTES = 400 << 20
"""Bytes of weights that a case goes through in turn: several times what a GPU's cache holds."""
MOST_COPIES = 24
RING_SLACK = 256
PROMPT_ROWS, PROMPT_KEYS = 2048, 8000


def cases_of(
    shape: Shape, dtype: torch.dtype, contexts: Sequence[int], card: Card, weights: WeightFormat = "bf16"
) -> list[Case]:
    """The case of every kernel of a round of this pair on a card: the target's first, with its weights in a format, and
    attention at each of the contexts."""
    tiles = target_tiles(shape.target.moe, card, weights, shape.target.sizes)
    target = _target(shape, Packing(dtype, MAKERS[weights]), contexts, card, tiles, weights)
    return [*target, *_drafter(shape, Packing(dtype, Int8Weight.of), contexts, card)]


def copies_for(num_bytes: float) -> int:
    return max(2, min(MOST_COPIES, int(ROTATED_BYTES / max(num_bytes, 1.0)) + 1))


def _target(
    shape: Shape,
    packing: Packing,
    contexts: Sequence[int],
    card: Card,
    tiles: TargetTiles,
    weights: WeightFormat,
) -> Iterator[Case]:
    config, plain = shape.target, replace(packing, make=PlainWeight)
    others = plain if "qkv" in plain_choices(weights) else packing
    itemsize, hidden = packing.dtype.itemsize, config.hidden_size
    for layer in dict.fromkeys(config.attention):
        kind = layer.kind.partition("_")[0]
        columns = (layer.num_heads + (1 if layer.value_is_key else 2) * layer.num_kv_heads) * layer.head_dim
        width = layer.num_heads * layer.head_dim
        for rows in (1, MAX_ROWS):
            qkv, output = (at_rows(rows, f"{name}, {kind}") for name in ("qkv", "output"))
            yield _product(qkv, columns, hidden, tiles.qkv, others, split=False, rows=rows, bias=layer.biases)
            yield _product(output, hidden, width, tiles.output, others, rows=rows, bias=layer.biases)
        for rows, context in product((1, MAX_ROWS), contexts):
            yield _attention(f"attention, {kind}, {rows} rows, {context}", layer, context, itemsize, card, rows)
    inter = config.intermediate_size
    for rows in (1, MAX_ROWS):
        dense = partial(_gate_up, inter=inter, depth=hidden, activation=config.activation, tiles=tiles.gate_up)
        of_target = partial(dense, packing=packing, moe=config.moe, rows=rows)
        if inter:
            yield of_target(at_rows(rows, "gate and up"))
        elif config.moe is not None:
            yield _route(at_rows(rows, "router"), config.moe, hidden, tiles.router, itemsize, rows)
        yield from norm_cases(config, tiles, itemsize, rows)
    if inter:
        yield _product("down", hidden, inter, tiles.down, packing)
    if config.moe is not None:
        routings: tuple[tuple[Routing, int], ...] = (("uniform", 1), ("uniform", 16), ("correlated", 16))
        for routing, rows in routings:
            yield from _experts(config, tiles, routing, rows, packing)
    for layer in dict.fromkeys(config.attention):
        yield _prompt(f"prompt attention, {layer.kind.partition('_')[0]}", layer, itemsize, card)
    yield _head("head", config, tiles.head, plain)
    yield _pick(config, tiles.head)


def _drafter(shape: Shape, packing: Packing, contexts: Sequence[int], card: Card) -> Iterator[Case]:
    config, target, itemsize = shape.drafter, shape.target, packing.dtype.itemsize
    if not isinstance(config, DFlashConfig):
        return
    tiles, hidden = draft_tiles(True, card, config.sizes), config.hidden_size
    draft_product = partial(_product, packing=packing)
    for layer in dict.fromkeys(config.layers):
        kind = layer.kind.partition("_")[0]
        kv_columns = 2 * layer.num_kv_heads * layer.head_dim
        if layer is config.layers[0]:
            columns = layer.num_heads * layer.head_dim + kv_columns
            width = layer.num_heads * layer.head_dim
            all_kv = len(config.layers) * kv_columns
            yield draft_product("draft qkv", columns, hidden, tiles.qkv, split=False)
            whole = partial(draft_product, split=False)
            yield whole("draft context kv", all_kv, hidden, tiles.context_kv)
            yield draft_product("draft output", hidden, width, tiles.output)
        for context in contexts:
            yield _attention(f"draft attention, {kind}, {context}", layer, context, itemsize, card)
    inter, features = config.intermediate_size, len(config.target_layer_ids) * hidden
    yield _gate_up("draft gate and up", inter, hidden, "silu", tiles.gate_up, packing)
    yield draft_product("draft down", hidden, inter, tiles.down)
    yield draft_product("draft context", hidden, features, tiles.context)
    yield _head("draft head", target, tiles.head, packing, of_drafter=True)


# --- the cases


def _product(
    name: str,
    columns: int,
    depth: int,
    tiles: Tiles,
    packing: Packing,
    split: bool = True,
    rows: int = MAX_ROWS,
    bias: bool = False,
) -> Case:
    def prepare(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[Tiles], list[Launch]]:
        weights = [packing.random(device, columns, depth) for _ in range(copies)]
        added = torch.randn(columns, device=device, dtype=dtype) if bias else None
        x = rows_of(device, dtype, depth)

        def launches(tiles: Tiles) -> list[Launch]:
            out = partial_sums(tiles, columns, device) if split else rows_of(device, dtype, columns)
            return [partial(project, x, weight, out, tiles, rows, added) for weight in weights]

        return launches

    return Case(name, packing.nbytes(columns, depth), tiles, prepare)


def _gate_up(
    name: str,
    inter: int,
    depth: int,
    activation: Activation,
    tiles: Tiles,
    packing: Packing,
    moe: MoeConfig | None = None,
    rows: int = MAX_ROWS,
) -> Case:
    """The case of gate and up; with experts, the router and its choice are part of the launch."""

    def prepare(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[Tiles], list[Launch]]:
        x, out = rows_of(device, dtype, depth), rows_of(device, dtype, inter)
        if moe is None:
            alone = [packing.random(device, 2 * inter, depth) for _ in range(copies)]
            return lambda tiles: [partial(gate_up, x, weight, out, activation, tiles, rows) for weight in alone]
        weights = [packing.random(device, 2 * inter, depth) for _ in range(copies)]
        router = RouterRows(
            x=x,
            weight=noise(device, dtype, moe.num_experts, depth),
            per_expert_scale=torch.ones(moe.num_experts, device=device, dtype=dtype),
            forced=None,
            rows=torch.full((1,), rows, dtype=torch.int32, device=device),
            found=Assignment.allocate(moe.num_experts, moe.top_k, device),
            tiles=TargetTiles().router,
        )

        def launches(tiles: Tiles) -> list[Launch]:
            scratch = SplitScratch.allocate(router.tiles, moe.num_experts, device)
            run = partial(gate_up_and_route, x, out=out, tiles=tiles, router=router, scratch=scratch, max_rows=rows)
            return [partial(run, weight=weight) for weight in weights]

        return launches

    size = packing.nbytes(2 * inter, depth) + (moe.num_experts if moe else 0) * depth * packing.dtype.itemsize
    return Case(name, size, tiles, prepare)


def _route(name: str, moe: MoeConfig, depth: int, tiles: Tiles, itemsize: int, rows: int) -> Case:
    """The case of a router that has no dense MLP beside it."""

    def prepare(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[Tiles], list[Launch]]:
        x, found = rows_of(device, dtype, depth), Assignment.allocate(moe.num_experts, moe.top_k, device)
        weights = [noise(device, dtype, moe.num_experts, depth) for _ in range(copies)]
        count = torch.full((1,), rows, dtype=torch.int32, device=device)

        def launches(tiles: Tiles) -> list[Launch]:
            scratch = SplitScratch.allocate(tiles, moe.num_experts, device)
            routers = [RouterRows(x, weight, None, None, count, found, tiles) for weight in weights]
            return [partial(route_rows, router, scratch, rows) for router in routers]

        return launches

    return Case(name, moe.num_experts * depth * itemsize, tiles, prepare)


def _experts(config: TargetConfig, tiles: TargetTiles, routing: Routing, rows: int, packing: Packing) -> Iterator[Case]:
    moe, hidden = config.moe, config.hidden_size
    assert moe is not None
    scores = forced_scores(routing, 1, moe.num_experts, torch.device("cpu"))[0][:rows]
    found = reference_assignment(scores, moe.top_k, torch.ones(moe.num_experts), tiles.pairs)
    distinct = len({expert for expert in found.experts.tolist() if expert >= 0})
    max_rows = 1 if rows == 1 else MAX_ROWS

    def prepare_up(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[Tiles], list[Launch]]:
        shape = (moe.num_experts, 2 * moe.intermediate_size, hidden)
        weights = [packing.random(device, *shape) for _ in range(copies)]
        x, out, inter = rows_of(device, dtype, hidden), _pair_rows(device, dtype), config.intermediate_size
        sums = partial_sums(tiles.down, hidden, device)
        downs = [packing.random(device, hidden, inter) if inter else None for _ in range(copies)]
        beside = [
            None if down is None else DenseDown(rows_of(device, dtype, inter), down, sums, tiles.down) for down in downs
        ]
        where, pairs = found.to(device), list(zip(weights, beside, strict=True))
        run = partial(expert_gate_up_rows, x, activation=config.activation, bias=_biases(device, dtype, shape[:2]))
        return lambda tiles: [partial(run, w, where, out, tiles, d, max_rows) for w, d in pairs]

    def prepare_down(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[Tiles], list[Launch]]:
        shape = (moe.num_experts, hidden, moe.intermediate_size)
        weights = [packing.random(device, *shape) for _ in range(copies)]
        act = _pair_rows(device, dtype)
        out = torch.zeros(MAX_ROWS, moe.top_k, hidden, device=device, dtype=dtype)
        where = found.to(device)
        bias = _biases(device, dtype, shape[:2])
        return lambda tiles: [partial(expert_down_rows, act, w, where, out, tiles, max_rows, bias) for w in weights]

    def _biases(device: torch.device, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor | None:
        """Biases for where gates and ups alternate, as in gpt-oss; None elsewhere."""
        return torch.randn(shape, device=device, dtype=dtype) if config.activation == "clamped_silu" else None

    def _pair_rows(device: torch.device, dtype: torch.dtype) -> Tensor:
        return torch.randn(MAX_ROWS * moe.top_k, moe.intermediate_size, device=device, dtype=dtype)

    up_size, down_size = (
        distinct * packing.nbytes(*each)
        for each in ((2 * moe.intermediate_size, hidden), (hidden, moe.intermediate_size))
    )
    what = f"{rows} rows, {routing}, {distinct} experts"
    up, down = tiles.expert_gate_up_alone if rows == 1 else tiles.expert_gate_up, tiles.expert_down
    inter = config.intermediate_size
    name, dense = "experts gate and up", packing.nbytes(hidden, inter) if inter else 0
    yield Case(f"{name}, {what}", up_size + dense, up, prepare_up)
    yield Case(f"experts down, {what}", down_size, down, prepare_down)


def _attention(
    name: str, layer: AttentionConfig, context: int, itemsize: int, card: Card, max_rows: int = MAX_ROWS
) -> Case:
    # A full layer's cache is as long as the context allowed, whatever part of it is in use.
    capacity = max(32_768 + RING_SLACK, context + MAX_ROWS) if layer.window is None else layer.window - 1 + RING_SLACK
    tiles = attend_tiles(layer, capacity, card, max_rows)

    def prepare(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[AttendTiles], list[Launch]]:
        shape = (layer.num_kv_heads, capacity, layer.head_dim)
        stores = [[torch.randn(shape, device=device, dtype=dtype) for _ in range(2)] for _ in range(min(copies, 8))]
        weights = [torch.ones(layer.head_dim, device=device, dtype=dtype) for _ in range(2)]
        norms = HeadNorms(weights[0], weights[1], 1e-6, rounded_first=False, norm_values=True)
        kv_parts = 1 if layer.value_is_key else 2
        projected = rows_of(device, dtype, (layer.num_heads + kv_parts * layer.num_kv_heads) * layer.head_dim)
        frequencies = inverse_frequencies(layer.rope, device)
        sinks = torch.randn(layer.num_heads, device=device, dtype=dtype) if layer.sinks else None
        out = torch.empty(MAX_ROWS, layer.num_heads * layer.head_dim, device=device, dtype=dtype)
        cursor, rows = (torch.full((1,), n, dtype=torch.int32, device=device) for n in (context, max_rows))

        def launches(tiles: AttendTiles) -> list[Launch]:
            scratch = AttendScratch([layer], [capacity], device, tiles)
            bound = partial(attend_rows, tiles=tiles, max_rows=max_rows, sinks=sinks)
            return [
                partial(bound, projected, norms, frequencies, k, v, cursor, rows, layer, out, scratch)
                for k, v in stores
            ]

        return launches

    seen = min(context, layer.window or context) + max_rows
    size = 2.0 * layer.num_kv_heads * seen * layer.head_dim * itemsize
    return Case(name, size, tiles, prepare)


def _prompt(name: str, layer: AttentionConfig, itemsize: int, card: Card) -> Case:
    """Attention of the last 2048 rows of a prompt of 8000. Arithmetic decides its time; the bytes are a floor far
    below."""
    seen = PROMPT_KEYS if layer.window is None else min(PROMPT_KEYS, layer.window - 1 + PROMPT_ROWS)

    def prepare(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[ChunkTiles], list[Launch]]:
        rows, keys = (PROMPT_ROWS, seen) if device.type == "cuda" else (20, 40)
        q = torch.randn(rows, layer.num_heads, layer.head_dim, device=device, dtype=dtype) * 0.1
        k, v = (torch.randn(layer.num_kv_heads, keys, layer.head_dim, device=device, dtype=dtype) for _ in range(2))
        run = partial(chunk_attention, q, k, v, causal=True, window=layer.window, scale=layer.scale)
        return lambda tiles: [partial(run, tiles=tiles)] * 2

    size = 2.0 * layer.head_dim * (layer.num_kv_heads * seen + layer.num_heads * PROMPT_ROWS) * itemsize
    return Case(name, size, chunk_tiles(layer.head_dim, card), prepare)


def _head(name: str, config: TargetConfig, tiles: Tiles, packing: Packing, of_drafter: bool = False) -> Case:
    vocab, hidden = config.vocab_size, config.hidden_size

    def prepare(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[Tiles], list[Launch]]:
        embedding = packing.random(device, vocab, hidden)
        x = rows_of(device, dtype, hidden)

        def launches(tiles: Tiles) -> list[Launch]:
            out = HeadOutput.allocate(vocab, tiles, device, keep_logits=not of_drafter)
            return [partial(head_rows, x, embedding, config.logit_softcap, out, tiles)] * 2  # larger than any cache

        return launches

    return Case(name, packing.nbytes(vocab, hidden), tiles, prepare)


def _pick(config: TargetConfig, tiles: Tiles) -> Case:
    def prepare(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[RowTiles], list[Launch]]:
        out = HeadOutput.allocate(config.vocab_size, tiles, device, keep_logits=False)
        out.tile_mass.fill_(1.0)
        return lambda rows: [partial(pick_rows, out, rows)] * copies

    return Case("pick", MAX_ROWS * config.vocab_size / tiles.columns * 12.0, ROW_TILES, prepare)
