"""Every kernel on a GPU at the real shapes against its definition in PyTorch: ``python -m measure.gpu.check_kernels``.

Besides the values: the same input gives the same bits twice, and a row's bits don't depend on how many rows run, nor
on whether they are a chain or a tree. Needs no pytest. With ``TRITON_INTERPRET=1``, ``--shape tiny --device cpu`` tries
the script out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from engine.commands import WeightFormat
from engine.kernels.decode.attention.attend_rows import AttendScratch, attend_rows
from engine.kernels.decode.attention.attend_tiles import MOST_CHANNELS, AttendTiles, FullTiles, attend_tiles
from engine.kernels.decode.attention.context_store import ContextStores, store_context
from engine.kernels.decode.attention.rope import norm_rope_store, norm_rope_store_reference
from engine.kernels.decode.experts.experts import DenseDown, expert_down_rows, expert_gate_up_rows
from engine.kernels.decode.experts.router import (
    Assignment,
    RouterRows,
    SplitScratch,
    gate_up_and_route,
    reference_assignment,
)
from engine.kernels.decode.experts.router import route_rows as router_alone
from engine.kernels.decode.norm import after_attention, after_feed_forward
from engine.kernels.decode.products.dense import gate_up, partial_sums, project, reference_gate_up, reference_project
from engine.kernels.decode.products.head import HeadOutput, capped_logits, head_rows, pick_rows
from engine.kernels.decode.products.packed import is_packed
from engine.kernels.decode.tiling.target_tiles import target_tiles
from engine.kernels.decode.tiling.tiles import DraftTiles, Tiles, draft_tiles
from engine.kernels.prefill.attention import chunk_attention
from engine.kernels.reference.attention import reference_attention
from engine.kernels.reference.joins import (
    AttentionJoin,
    FeedForwardJoin,
    reference_after_attention,
    reference_after_feed_forward,
)
from engine.kernels.reference.rope import inverse_frequencies
from engine.kernels.round.sample import SampledRows, SampleScratch, SamplingSettings, sample_rows
from engine.kernels.shared.heads import HeadNorms
from engine.kernels.toolchain.card import card_of
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.kinds import MAKERS
from engine.kernels.weights.plain import PlainWeight
from engine.kernels.weights.weight import Weight
from engine.kv_cache.cache import Cache
from engine.lab.bench.routing import forced_scores
from engine.lab.bench.shapes import SHAPES, Shape, read_shape
from engine.layer_config import AttentionConfig
from engine.loading.checkpoint import compute_dtype
from engine.models.dflash.config import DFlashConfig
from engine.sampling.sampling import sample
from measure.gpu.prompt_checks import check_prompts
from measure.gpu.report import Report
from measure.gpu.shared_memory import LoadedKernels
from measure.gpu.tree_checks import check_trees
from measure.quick import parse
from support.routed import route_rows

ROWS = (1, 5, 16)
PARTS = ("products", "experts", "norms", "attention", "trees", "head", "prompts")
FP32_ERROR = 1e-5
"""Relative difference of sums in fp32 in another order."""

Make = Callable[[Tensor], Weight]
Run = Callable[[int], Tensor]
"""Runs a kernel for this many rows and returns their results."""


class Checks:
    """Checks the kernels of one shape on one device."""

    def __init__(self, shape: Shape, weights: WeightFormat, device: torch.device, report: Report):
        self.target, self.drafter = shape.target, shape.drafter
        self.make = MAKERS[weights]
        self.device, self.dtype, self.report = device, compute_dtype(device), report
        # bf16 results: one rounding, and now and then a second one where the reference rounds in between.
        self.rounding = FP32_ERROR if self.dtype is torch.float32 else 2.0**-8
        self.tiles = target_tiles(shape.target.moe, card_of(device), weights, shape.target.sizes)

    def noise(self, *shape: int, scale: float = 1.0) -> Tensor:
        return torch.randn(shape, device=self.device, dtype=self.dtype) * scale

    def noise_of_weight(self, *shape: int) -> Tensor:
        return self.noise(*shape, scale=shape[-1] ** -0.5)

    def weight(self, *shape: int) -> Weight:
        """A random weight in the format that is checked."""
        return self.make(self.noise_of_weight(*shape))

    def int32(self, value: int) -> Tensor:
        return torch.full((1,), value, dtype=torch.int32, device=self.device)

    def compare(self, name: str, run: Run, expected: Tensor, allowed: float) -> None:
        """Compares a kernel's results with ``expected``, which holds all 16 rows in its first dimension."""
        results = {rows: run(rows).clone() for rows in ROWS}
        again = run(16)
        error = float((results[16].float() - expected.float()).norm() / expected.float().norm())
        repeats = torch.equal(again, results[16])
        invariant = all(torch.equal(results[16][:rows], results[rows]) for rows in ROWS)
        value = f"error {error:.1e}, {'same bits twice' if repeats else 'OTHER BITS THE SECOND TIME'}"
        value += "" if invariant else ", BITS DEPEND ON THE NUMBER OF ROWS"
        self.report.line(name, value, error <= allowed and repeats and invariant)

    # --- products

    def products(self) -> None:
        target, tiles = self.target, self.tiles
        for layer in dict.fromkeys(target.attention):
            kind = layer.kind.partition("_")[0]
            columns = (layer.num_heads + (1 if layer.value_is_key else 2) * layer.num_kv_heads) * layer.head_dim
            self._project(f"qkv, {kind}", columns, target.hidden_size, tiles.qkv)
            self._project(f"output, {kind}", target.hidden_size, layer.num_heads * layer.head_dim, tiles.output)
        if target.intermediate_size:  # some have experts in place of an MLP
            self._project("down", target.hidden_size, target.intermediate_size, tiles.down)
            self._gate_up("gate and up", target.intermediate_size, "gelu_tanh", tiles.gate_up)
        if isinstance(self.drafter, DFlashConfig):
            taps, layer = len(self.drafter.target_layer_ids), self.drafter.layers[0]
            hidden, inter = target.hidden_size, self.drafter.intermediate_size
            queries, keys = layer.num_heads * layer.head_dim, layer.num_kv_heads * layer.head_dim
            card = card_of(self.device)
            drafts: tuple[tuple[int, DraftTiles, Make], ...] = (
                (16, draft_tiles(False, card), PlainWeight),
                (8, draft_tiles(True, card), Int8Weight.of),
            )
            for bits, draft, make in drafts:
                name, all_keys = f"draft, {bits} bits,", 2 * keys * len(self.drafter.layers)
                self._project(f"{name} context", hidden, taps * hidden, draft.context, make)
                self._project(f"{name} context kv", all_keys, hidden, draft.context_kv, make)
                self._project(f"{name} qkv", queries + 2 * keys, hidden, draft.qkv, make)
                self._project(f"{name} output", hidden, queries, draft.output, make)
                self._gate_up(f"{name} gate and up", inter, "silu", draft.gate_up, make)
                self._project(f"{name} down", hidden, inter, draft.down, make)
            self._store_context()

    def _store_context(self) -> None:
        """Checks that one launch for all layers of a drafter stores what one launch for each does."""
        assert self.drafter is not None
        layers = self.drafter.layers
        ones = [torch.randn(2, layers[0].head_dim, device=self.device).to(self.dtype) for _ in layers]
        norms = [HeadNorms(q, k, 1e-6, rounded_first=True, norm_values=False) for q, k in ones]
        frequencies = inverse_frequencies(layers[0].rope, self.device)
        ours, theirs = (Cache(layers, 4096, 256, self.dtype, self.device) for _ in range(2))
        stores, start = ContextStores(ours.attention, norms), self.int32(2300)
        for rows in (1, 5, 16):
            projected = self.noise(16, stores.columns)
            store_context(projected, stores, frequencies, start, self.int32(rows))
            for part, norm, layer in zip(projected.chunk(len(layers), 1), norms, theirs.attention, strict=True):
                norm_rope_store(part.contiguous(), norm, frequencies, layer.k, layer.v, start, self.int32(rows))
            pairs = zip(ours.attention, theirs.attention, strict=True)
            same = all(torch.equal(a.k, b.k) and torch.equal(a.v, b.v) for a, b in pairs)
            stored = all(bool(layer.k.any()) for layer in ours.attention)
            self.report.line(
                f"draft, context stored, {rows} rows", "same bits" if same else "OTHER BITS", same and stored
            )

    def _project(self, name: str, columns: int, depth: int, tiles: Tiles, make: Make | None = None) -> None:
        x, weight = self.noise(16, depth), (make or self.make)(self.noise_of_weight(columns, depth))

        def run(rows: int) -> Tensor:
            out = partial_sums(tiles, columns, self.device)
            project(x, weight, out, tiles, rows)
            return out.sum(0)[:rows]

        self.compare(name, run, reference_project(x, weight), FP32_ERROR)

    def _gate_up(self, name: str, inter: int, activation: str, tiles: Tiles, make: Make | None = None) -> None:
        depth = self.target.hidden_size
        x, weight = self.noise(16, depth), (make or self.make)(self.noise_of_weight(2 * inter, depth))

        def run(rows: int) -> Tensor:
            out = self.noise(16, inter)
            gate_up(x, weight, out, activation, tiles, rows)  # type: ignore[arg-type]
            return out[:rows]

        expected = reference_gate_up(x.float(), weight, activation)  # type: ignore[arg-type]
        self.compare(name, run, expected, self.rounding)

    # --- experts

    def experts(self) -> None:
        moe, hidden = self.target.moe, self.target.hidden_size
        if moe is None:
            return
        if not self.target.intermediate_size:
            self._route_alone()  # ``check_passes`` compares such experts, which have biases of their own
            return
        gate_up_weight = self.weight(moe.num_experts, 2 * moe.intermediate_size, hidden)
        down = self.weight(moe.num_experts, hidden, moe.intermediate_size)
        x, scale = self.noise(16, hidden), self.noise(moe.num_experts)
        scores = forced_scores("uniform", 1, moe.num_experts, self.device)[0][:16].contiguous()
        found = Assignment.allocate(moe.num_experts, moe.top_k, self.device)
        for rows in ROWS:
            route_rows(scores, self.int32(rows), scale, found, rows)
            wanted = reference_assignment(scores[:rows].cpu(), moe.top_k, scale.cpu())
            same = _assigned_alike(found, wanted)
            close = torch.allclose(found.weights[:rows].cpu(), wanted.weights[:rows], atol=1e-6)
            self.report.line(f"route, {rows} rows", f"choice {same}, weights {close}", same and close)
        ids = scores.sort(dim=-1, descending=True, stable=True).indices[:, : moe.top_k]
        self._gate_up_and_route(scale)
        dense_act, dense_weight = (
            self.noise(16, self.target.intermediate_size),
            self.weight(hidden, self.target.intermediate_size),
        )
        down_tiles = self.tiles.down
        dense = DenseDown(dense_act, dense_weight, partial_sums(down_tiles, hidden, self.device), down_tiles)

        def run_up(rows: int) -> Tensor:
            route_rows(scores, self.int32(rows), scale, found)
            out = torch.zeros(16 * moe.top_k, moe.intermediate_size, device=self.device, dtype=self.dtype)
            up_tiles = self.tiles.expert_gate_up_alone if rows == 1 else self.tiles.expert_gate_up
            expert_gate_up_rows(x, gate_up_weight, found, out, up_tiles, dense, rows)
            return out.view(16, moe.top_k, -1)[:rows]

        def gated(row: int, expert: int) -> Tensor:
            alone = _of_expert(gate_up_weight, expert)
            return reference_gate_up(x[row, None].float(), alone, "gelu_tanh")[0]

        expected = torch.stack([torch.stack([gated(row, int(expert)) for expert in ids[row]]) for row in range(16)])
        self.compare("experts gate and up", run_up, expected, self.rounding)
        beside = reference_project(dense_act, dense_weight)
        self.compare("down, beside them", lambda rows: (run_up(rows), dense.out.sum(0)[:rows])[1], beside, FP32_ERROR)
        act = run_up(16).reshape(16 * moe.top_k, -1).contiguous()

        def run_down(rows: int) -> Tensor:
            route_rows(scores, self.int32(rows), scale, found)
            out = torch.zeros(16, moe.top_k, hidden, device=self.device, dtype=self.dtype)
            expert_down_rows(act, down, found, out, self.tiles.expert_down, rows)
            return out[:rows]

        pairs = [(row, rank) for row in range(16) for rank in range(moe.top_k)]
        outputs = [_of_expert(down, int(ids[r, k])).restored() @ act[r * moe.top_k + k].float() for r, k in pairs]
        route_rows(scores, self.int32(16), scale, found)
        expected = torch.stack(outputs).view(16, moe.top_k, hidden) * found.weights[..., None]
        self.compare("experts down", run_down, expected, self.rounding)
        if is_packed(down):
            self._in_eights(x, gate_up_weight, down, scale)

    def _in_eights(self, x: Tensor, up: Weight, down: Weight, scale: Tensor) -> None:
        """Checks that entries of eight pairs give the bits of entries of sixteen, even where experts have two
        entries."""
        moe, hidden = self.target.moe, self.target.hidden_size
        assert moe is not None

        def run(scores: Tensor, most: int) -> Tensor:
            found = Assignment.allocate(moe.num_experts, moe.top_k, self.device, most)
            route_rows(scores, self.int32(16), scale, found)
            act = torch.zeros(16 * moe.top_k, moe.intermediate_size, device=self.device, dtype=self.dtype)
            out = torch.zeros(16, moe.top_k, hidden, device=self.device, dtype=self.dtype)
            expert_gate_up_rows(x, up, found, act, self.tiles.expert_gate_up, None)
            expert_down_rows(act, down, found, out, self.tiles.expert_down)
            return torch.cat([act.flatten(), out.flatten()])

        for routing in ("uniform", "correlated"):
            scores = forced_scores(routing, 1, moe.num_experts, self.device)[0][:16].contiguous()
            same = torch.equal(run(scores, 8), run(scores, 16))
            self.report.line(f"experts in eights, {routing}", "same bits" if same else "OTHER BITS", same)

    def _gate_up_and_route(self, scale: Tensor) -> None:
        """Checks the launch by the router's own scores; several launches run one after the other, as in layers."""
        moe, hidden, inter = self.target.moe, self.target.hidden_size, self.target.intermediate_size
        assert moe is not None
        x, weight = self.noise(16, hidden), self.weight(2 * inter, hidden)
        routed, router_weight = self.noise(16, hidden), PlainWeight(self.noise_of_weight(moe.num_experts, hidden))
        found = Assignment.allocate(moe.num_experts, moe.top_k, self.device)
        scratch = SplitScratch.allocate(self.tiles.router, moe.num_experts, self.device)

        def run(rows: int) -> Tensor:
            out = self.noise(16, inter)
            for _ in range(3):
                count = self.int32(rows)
                router = RouterRows(routed, router_weight.values, scale, None, count, found, self.tiles.router)
                gate_up_and_route(x, weight, out, self.tiles.gate_up, router, scratch, rows)
            scores = scratch.scores.sum(0)
            wanted = reference_assignment(scores[:rows].cpu(), moe.top_k, scale.cpu())
            same = _assigned_alike(found, wanted)
            self.report.line(
                f"choice by the router's scores, {rows} rows", str(same), same and not bool(scratch.arrived.any())
            )
            return torch.cat([out[:rows].float(), scores[:rows], found.weights[:rows]], dim=1)

        expected_scores = reference_project(routed, router_weight)
        weights = reference_assignment(expected_scores.cpu(), moe.top_k, scale.cpu()).weights.to(self.device)
        dense = reference_gate_up(x.float(), weight, "gelu_tanh")
        expected = torch.cat([dense, expected_scores, weights], dim=1)
        self.compare("gate and up, router", run, expected, self.rounding)

    def _route_alone(self) -> None:
        """Checks the launch of a router beside which nothing runs, by its own scores."""
        moe, hidden = self.target.moe, self.target.hidden_size
        assert moe is not None
        x, weight = self.noise(16, hidden), PlainWeight(self.noise_of_weight(moe.num_experts, hidden))
        found = Assignment.allocate(moe.num_experts, moe.top_k, self.device)
        scratch = SplitScratch.allocate(self.tiles.router, moe.num_experts, self.device)

        def run(rows: int) -> Tensor:
            for _ in range(3):
                router = RouterRows(x, weight.values, None, None, self.int32(rows), found, self.tiles.router)
                router_alone(router, scratch, rows)
            scores = scratch.scores.sum(0)[:rows]
            same = _assigned_alike(found, reference_assignment(scores.cpu(), moe.top_k))
            self.report.line(f"choice alone, {rows} rows", str(same), same and not bool(scratch.arrived.any()))
            return torch.cat([scores, found.weights[:rows]], dim=1)

        expected = reference_project(x, weight)
        weights = reference_assignment(expected.cpu(), moe.top_k).weights.to(self.device)
        self.compare("router alone", run, torch.cat([expected, weights], dim=1), self.rounding)

    # --- norms

    def norms(self) -> None:
        hidden, eps = self.target.hidden_size, self.target.rms_norm_eps
        moe = self.target.moe
        weights = AttentionJoin(*(1 + self.noise(hidden, scale=0.25) for _ in range(4)))
        partials, start = torch.randn(self.tiles.output.splits, 16, hidden, device=self.device), self.noise(16, hidden)

        def run(rows: int) -> Tensor:
            x, dense, experts, routed = start.clone(), *(torch.zeros_like(start) for _ in range(3))
            after_attention(partials, x, weights, eps, dense, experts, routed, max_rows=rows)
            return torch.cat([x, dense, experts, routed], dim=1)[:rows]

        wanted = reference_after_attention(partials, start, weights, eps)
        self.compare("after attention", run, torch.cat([part for part in wanted if part is not None], 1), self.rounding)
        scalar = torch.full((1,), 0.9, device=self.device, dtype=self.dtype)
        four = [1 + self.noise(hidden, scale=0.25) for _ in range(4)]
        join = FeedForwardJoin(four[0] if moe else None, four[1] if moe else None, four[2], scalar, four[3])
        sums = torch.randn(self.tiles.down.splits, 16, hidden, device=self.device)
        pairs = self.noise(16, moe.top_k, hidden) if moe else None

        def run_last(rows: int) -> Tensor:
            x, normed = start.clone(), torch.zeros_like(start)
            after_feed_forward(sums, pairs, x, join, eps, normed, max_rows=rows)
            return torch.cat([x, normed], dim=1)[:rows]

        last = torch.cat(reference_after_feed_forward(sums, pairs, start, join, eps), dim=1)
        self.compare("after feed-forward", run_last, last, self.rounding)

    # --- attention

    def attention(self, contexts: tuple[int, ...]) -> None:
        for layer, rounded_first in self._layers():
            name = f"{layer.num_heads}/{layer.num_kv_heads} heads of {layer.head_dim}, window {layer.window}"
            self._rope(f"rope, {name}", layer, rounded_first)
            for context in contexts:
                self._attend(f"{name}, {context}", layer, rounded_first, context)
            self._prompt(f"prompt, {name}", layer)

    def _layers(self) -> Iterator[tuple[AttentionConfig, bool]]:
        for layer in dict.fromkeys(self.target.attention):
            yield layer, False
        for layer in dict.fromkeys(self.drafter.layers if self.drafter else ()):
            yield layer, True

    def _norms(self, head_dim: int, rounded_first: bool) -> HeadNorms:
        q, k = (1 + self.noise(head_dim, scale=0.25) for _ in range(2))
        return HeadNorms(q, k, 1e-6, rounded_first, not rounded_first)

    def _projected(self, layer: AttentionConfig) -> Tensor:
        heads = layer.num_heads + (1 if layer.value_is_key else 2) * layer.num_kv_heads
        return self.noise(16, heads * layer.head_dim)

    def _rope(self, name: str, layer: AttentionConfig, rounded_first: bool) -> None:
        """Checks the kernel by itself, as layers without a window and the drafter's context use it."""
        d, heads, kv = layer.head_dim, layer.num_heads, layer.num_kv_heads
        norms, projected = self._norms(d, rounded_first), self._projected(layer)
        frequencies, cursor = inverse_frequencies(layer.rope, self.device), self.int32(1015)

        def run_with(function: Callable[..., None], rows: int) -> Tensor:
            given = projected.clone()
            k, v = (torch.zeros(kv, 1024, d, device=self.device, dtype=self.dtype) for _ in range(2))
            at = (given, norms, frequencies, k, v, cursor, self.int32(rows), heads)
            function(*at, value_is_key=layer.value_is_key)
            return torch.cat([given[:, : heads * d], *self._stored(k, v, 1015)], dim=1)[:rows]

        expected = run_with(norm_rope_store_reference, 16)
        self.compare(name, lambda rows: run_with(norm_rope_store, rows), expected, self.rounding)

    def _stored(self, k: Tensor, v: Tensor, start: int) -> list[Tensor]:
        """Keys and values of 16 rows from a position on, [16, kv_heads * head_dim] each."""
        places = torch.arange(start, start + 16, device=self.device) % k.shape[1]
        return [part[:, places].transpose(0, 1).flatten(1) for part in (k, v)]

    def _attend(self, name: str, layer: AttentionConfig, rounded_first: bool, context: int) -> None:
        """Norms, turns, stores and attends; each row also alone, as the only one of a pass at its position, and then in
        fp32: rounded to the 16 bits of a pass, sums that differ in their last bit are nearly always the same."""
        d, heads = layer.head_dim, layer.num_heads
        capacity = context + 300 if layer.window is None else layer.window - 1 + 256
        shape = (layer.num_kv_heads, capacity, d)
        k, v = self.noise(*shape, scale=0.25), self.noise(*shape)
        norms, projected = self._norms(d, rounded_first), self._projected(layer)
        sinks = self.noise(heads) if layer.sinks else None
        frequencies, scratch = (
            inverse_frequencies(layer.rope, self.device),
            AttendScratch([layer], [capacity], self.device),
        )

        def attend(first: int, rows: int, dtype: torch.dtype = self.dtype, tiles: AttendTiles | None = None) -> Tensor:
            at, count = self.int32(context + first), self.int32(rows)
            out = torch.zeros(16, heads * d, device=self.device, dtype=dtype)
            given = torch.roll(projected, -first, 0)
            attend_rows(
                given, norms, frequencies, k, v, at, count, layer, out, scratch, tiles, max_rows=rows, sinks=sinks,
                lets_go=self.tiles.lets_go,
            )  # fmt: skip
            return torch.cat([out, *self._stored(k, v, context + first)], dim=1)[:rows]

        def run(rows: int) -> Tensor:
            # A row that sees the whole block sees another one when fewer rows run, so there is nothing to compare.
            return attend(0, rows) if layer.causal or rows == 16 else block[:rows]

        block = attend(0, 16)
        if layer.causal and self.device.type == "cuda":  # on a CPU sums depend on a row's place
            for how_alone, choices in self._ways_alone(layer, capacity):
                exact = attend(0, 16, torch.float32, choices(16))
                same = all(torch.equal(attend(row, 1, torch.float32, choices(1))[0], exact[row]) for row in range(16))
                self.report.line(f"{name}, each row alone{how_alone}", "same bits" if same else "OTHER BITS", same)
        given, k_fp32, v_fp32 = projected.clone(), k.clone(), v.clone()
        at = (self.int32(context), self.int32(16))
        norm_rope_store_reference(
            given, norms, frequencies, k_fp32, v_fp32, *at, heads, value_is_key=layer.value_is_key
        )
        stored = self._stored(k_fp32, v_fp32, context)
        first = 0 if layer.window is None else max(0, context - layer.window + 1)
        seen = torch.arange(first, context + 16, device=self.device) % capacity
        q = given[:, : heads * d].view(16, heads, d).float().contiguous()
        how = {"causal": layer.causal, "window": layer.window, "scale": layer.scale, "sinks": sinks}
        mixed = reference_attention(q, k_fp32[:, seen].float(), v_fp32[:, seen].float(), **how)  # type: ignore[arg-type]
        self.compare(name, lambda rows: run(rows)[:, : heads * d], mixed, self.rounding)
        self.compare(f"{name}, stored", lambda rows: run(rows)[:, heads * d :], torch.cat(stored, 1), self.rounding)

    def _ways_alone(self, layer: AttentionConfig, capacity: int) -> Iterator[tuple[str, Callable[[int], AttendTiles]]]:
        """Tiles for rows alone: those in use, by the most rows there are, and those that the search for tiles tries
        beside them."""

        def in_use(rows: int) -> AttendTiles:
            return attend_tiles(layer, capacity, card_of(self.device), rows)

        def other(rows: int) -> AttendTiles:
            full = in_use(rows)
            assert isinstance(full, FullTiles)
            return replace(full, alone=not full.alone)

        yield "", in_use
        if layer.window is None and layer.head_dim <= MOST_CHANNELS:
            yield ", normed elsewhere", other

    def _prompt(self, name: str, layer: AttentionConfig) -> None:
        n, keys = (512, 1600) if self.device.type == "cuda" else (20, 50)
        q = self.noise(n, layer.num_heads, layer.head_dim)
        k, v = (self.noise(layer.num_kv_heads, keys, layer.head_dim, scale=scale) for scale in (0.25, 1.0))
        how = {"causal": True, "window": layer.window, "scale": layer.scale}
        actual = chunk_attention(q, k, v, **how)  # type: ignore[arg-type]
        expected = reference_attention(q.float(), k.float(), v.float(), **how)  # type: ignore[arg-type]
        error = float((actual.float() - expected).norm() / expected.norm())
        again = torch.equal(actual, chunk_attention(q, k, v, **how))  # type: ignore[arg-type]
        self.report.line(name, f"error {error:.1e}", error <= self.rounding and again)

    # --- head and sampling

    def head(self) -> None:
        vocab, hidden, softcap = self.target.vocab_size, self.target.hidden_size, self.target.logit_softcap
        embedding, x, tiles = self.noise_of_weight(vocab, hidden) * 4, self.noise(16, hidden), self.tiles.head
        out = HeadOutput.allocate(vocab, tiles, self.device)
        logits = capped_logits(x.float(), PlainWeight(embedding.float()), softcap)

        def run(rows: int) -> Tensor:
            head_rows(x, PlainWeight(embedding), softcap, out, tiles, rows)
            pick_rows(out, max_rows=rows)
            assert out.logits is not None
            return out.logits[:rows]

        self.compare("head", run, logits, FP32_ERROR)
        assert out.logits is not None
        best = out.logits.max(dim=-1)
        probability = out.logits.softmax(dim=-1).gather(-1, best.indices[:, None])[:, 0]
        picked = torch.equal(out.token[:16], best.indices) and torch.allclose(out.probability, probability, rtol=1e-4)
        self.report.line("pick", f"the most likely tokens and their probabilities: {picked}", picked)
        self._sampling(out)
        quantised = Int8Weight.of(embedding)
        restored = capped_logits(x.float(), PlainWeight(quantised.restored()), softcap)

        def run_int8(rows: int) -> Tensor:
            run_out = HeadOutput.allocate(vocab, tiles, self.device)
            head_rows(x, quantised, softcap, run_out, tiles, rows)
            assert run_out.logits is not None
            return run_out.logits[:rows]

        self.compare("head in 8 bits", run_int8, restored, FP32_ERROR)

    def _sampling(self, out: HeadOutput) -> None:
        assert out.logits is not None
        scratch, settings = SampleScratch(self.target.vocab_size, self.device), SamplingSettings.allocate(self.device)
        sampled, drafted = SampledRows.allocate(self.device), torch.arange(16, device=self.device)
        for temperature, top_k, top_p in ((1.0, 0, 1.0), (0.7, 40, 1.0), (1.3, 0, 0.9), (0.8, 64, 0.95)):
            settings.temperature.fill_(temperature), settings.top_k.fill_(top_k), settings.top_p.fill_(top_p)
            settings.seed.fill_(7)
            sample_rows(out, settings, self.int32(99), self.int32(16), drafted, sampled, scratch)
            wanted = sample(out.logits, 100, range(15), temperature=temperature, top_k=top_k, top_p=top_p, seed=7)
            same = sampled.token.tolist() == wanted.ids
            self.report.line(f"sampling, T {temperature} k {top_k} p {top_p}", f"the defined tokens: {same}", same)


def _assigned_alike(found: Assignment, wanted: Assignment) -> bool:
    run = wanted.experts >= 0
    return torch.equal(found.experts.cpu(), wanted.experts) and torch.equal(found.pairs.cpu()[run], wanted.pairs[run])


def _of_expert(weight: Weight, expert: int) -> Weight:
    """One matrix of a stack."""
    return type(weight)(weight.values[expert], None if weight.scales is None else weight.scales[expert])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", choices=SHAPES, default="26B-A4B")
    parser.add_argument("--weights", choices=list(MAKERS), default="bf16", help="how the target's lie in memory")
    parser.add_argument("--contexts", type=int, nargs="+", default=[5, 128, 1100, 2040, 2048, 32_768])
    parser.add_argument("--parts", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --shape tiny --contexts 20", kernels=True)
    report, device = Report(), torch.device(options.device)
    torch.manual_seed(0)
    shape = read_shape(options.shape)
    checks, loaded = Checks(shape, options.weights, device, report), LoadedKernels()
    parts: dict[str, Callable[[], None]] = {
        "products": checks.products,
        "experts": checks.experts,
        "norms": checks.norms,
        "attention": lambda: checks.attention(tuple(options.contexts)),
        "trees": lambda: check_trees(shape, device, report),
        "head": checks.head,
        "prompts": lambda: check_prompts(shape, options.weights, device, report),  # for Gemma only
    }
    for name in options.parts:
        try:
            parts[name]()
        except Exception as error:
            report.line(name, f"{type(error).__name__}: {str(error)[:300]}", False)
        report.write(options.out)
    loaded.check_splits(report)
    report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    with torch.inference_mode():
        sys.exit(main())
