"""Routing and experts of a few rows against their definitions, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.experts.experts import DenseDown, expert_down_rows, expert_gate_up_rows
from engine.kernels.decode.experts.router import (
    Assignment,
    RouterRows,
    SplitScratch,
    gate_up_and_route,
    reference_assignment,
)
from engine.kernels.decode.products.dense import partial_sums, project, reference_gate_up, reference_project
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.reference.moe import experts, route
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kernels.weights.fp8 import Fp8Weight
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.mxfp4 import Mxfp4Weight
from engine.kernels.weights.plain import PlainWeight
from engine.kernels.weights.weight import Weight
from engine.layer_config import CLAMP, Activation
from support.routed import route_rows
from tests.kernels.tensors import CPU, FP32_AND_BF16, noise, number

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

NUM_EXPERTS, TOP_K, HIDDEN, INTER = 12, 3, 72, 40
TILES, DENSE_TILES = Tiles(16, 32), Tiles(16, 16, splits=2)
PACKED = pytest.mark.parametrize("kind", [Fp8Weight.of, Int4Weight.of, Mxfp4Weight.of], ids=["fp8", "int4", "mxfp4"])


def used_before(num_experts: int, top_k: int, most: int = 16) -> Assignment:
    """An assignment that still holds another pass."""
    found = Assignment.allocate(num_experts, top_k, CPU, most)
    for tensor in (found.experts, found.pairs[:, :most], found.weights):
        tensor.fill_(77)
    return found


def assert_assigned_alike(actual: Assignment, expected: Assignment, rows: int) -> None:
    assert torch.equal(actual.experts, expected.experts)
    run = expected.experts >= 0
    assert torch.equal(actual.pairs[run, : expected.most], expected.pairs[run, : expected.most])
    torch.testing.assert_close(actual.weights[:rows], expected.weights[:rows], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(("num_experts", "top_k"), [(12, 3), (128, 8)])
@pytest.mark.parametrize("rows", [1, 5, 16])
@pytest.mark.parametrize("most", [16, 8])
def test_routing(num_experts: int, top_k: int, rows: int, most: int) -> None:
    """Some experts are much liked: with entries of eight they have two."""
    liked = 3 * (torch.arange(num_experts) < 2)
    scores, scale = noise(16, num_experts, seed=rows) + liked, 1 + 0.2 * noise(num_experts, seed=1)
    found = used_before(num_experts, top_k, most)
    route_rows(scores, number(rows), scale, found, max_rows=rows)
    expected = reference_assignment(scores[:rows], top_k, scale, most)
    assert_assigned_alike(found, expected, rows)
    listed = [expert for expert in expected.experts.tolist() if expert >= 0]
    assert (len(set(listed)) < len(listed)) == (most == 8 and rows == 16)
    weights, ids = route(scores[:rows], top_k, scale)
    for row in range(rows):
        for rank, expert in enumerate(ids[row].tolist()):
            assert row * top_k + rank in found.pairs[found.experts == expert, :most].flatten().tolist()
    torch.testing.assert_close(found.weights[:rows], weights, atol=1e-6, rtol=1e-5)


def test_of_equal_scores_the_lower_expert_wins() -> None:
    scores = noise(16, NUM_EXPERTS).round()
    assert len(scores[0].unique()) < NUM_EXPERTS, "there are ties"
    found = used_before(NUM_EXPERTS, TOP_K)
    route_rows(scores, number(16), torch.ones(NUM_EXPERTS), found)
    assert_assigned_alike(found, reference_assignment(scores, TOP_K, torch.ones(NUM_EXPERTS)), 16)
    equal = torch.zeros(16, NUM_EXPERTS)
    equal[:, ::2] = -0.0
    route_rows(equal, number(16), torch.ones(NUM_EXPERTS), found)
    assert found.experts.tolist() == [0, 1, 2] + [-1] * (NUM_EXPERTS - 3)


@pytest.mark.parametrize("max_rows", [1, 16])
def test_no_rows_choose_no_experts(max_rows: int) -> None:
    found = used_before(NUM_EXPERTS, TOP_K)
    route_rows(noise(16, NUM_EXPERTS), number(0), torch.ones(NUM_EXPERTS), found, max_rows)
    assert (found.experts == -1).all()


@pytest.mark.parametrize(("num_experts", "top_k", "liked"), [(32, 4, 4), (12, 3, 4), (128, 8, 0)])
def test_entries_of_eight_are_enough(num_experts: int, top_k: int, liked: int) -> None:
    """Where as many experts as can be have nine pairs, and all others one: there are more entries than experts, or as
    many as pairs."""
    scores = torch.zeros(16, num_experts)
    others = iter(list(range(liked, num_experts)) * 2)
    for row in range(16):
        first = [expert for expert in range(liked) if (row + 4 * expert) % 16 < 9][:top_k]
        for expert in first + [next(others) for _ in range(top_k - len(first))]:
            scores[row, expert] = 9
    expected = reference_assignment(scores, top_k, torch.ones(num_experts), 8)
    assert int((expected.experts >= 0).sum()) > num_experts or top_k * 16 == num_experts
    found = used_before(num_experts, top_k, 8)
    route_rows(scores, number(16), torch.ones(num_experts), found)
    assert_assigned_alike(found, expected, 16)


@PACKED
@FP32_AND_BF16
def test_a_router_beside_packed_gate_and_up(kind: Callable[[Tensor], Weight], dtype: torch.dtype) -> None:
    """Gate and up cross both edges of their tiles; the router's weight is never packed."""
    inter, hidden, num_experts = 48, 160, 24
    x, weight = noise(16, hidden).to(dtype), kind(noise(2 * inter, hidden, seed=1) / 8)
    routed, router_weight = noise(16, hidden, seed=2).to(dtype), noise(num_experts, hidden, seed=3).to(dtype)
    out, found, tiles = torch.full((16, inter), 7.0, dtype=dtype), used_before(num_experts, TOP_K), Tiles(32, 32, 3)
    scratch, scale = SplitScratch.allocate(tiles, num_experts, CPU), torch.ones(num_experts)
    router = RouterRows(routed, router_weight, scale, None, number(16), found, tiles)
    gate_up_and_route(x, weight, out, Tiles(32, 64, warps=2, stages=3), router, scratch)
    tolerance = 1e-4 if dtype is torch.float32 else 2**-7
    torch.testing.assert_close(out, reference_gate_up(x, weight, "gelu_tanh"), atol=1e-4, rtol=tolerance)
    scores = scratch.scores.sum(0)
    torch.testing.assert_close(scores, reference_project(routed, PlainWeight(router_weight)), atol=1e-4, rtol=1e-5)
    assert_assigned_alike(found, reference_assignment(scores, TOP_K, scale), 16)


@pytest.mark.usefixtures("ordered_sums")
def test_a_row_has_the_same_bits_at_every_width() -> None:
    """Alone it is summed and routed by smaller tiles of the same order."""
    x, weight, tiles = noise(16, HIDDEN), PlainWeight(noise(2 * INTER, HIDDEN, seed=1)), Tiles(16, 32, 2)
    router_weight, scale = noise(NUM_EXPERTS, HIDDEN, seed=3), torch.ones(NUM_EXPERTS)

    def run(max_rows: int) -> Tensor:
        out, found = torch.full((16, INTER), 7.0), used_before(NUM_EXPERTS, TOP_K)
        scratch = SplitScratch.allocate(tiles, NUM_EXPERTS, CPU)
        router = RouterRows(x, router_weight, scale, None, number(max_rows), found, tiles)
        gate_up_and_route(x, weight, out, tiles, router, scratch, max_rows)
        assert (out[max_rows:] == 7).all()
        return torch.cat([out[:max_rows], found.weights[:max_rows]], dim=1)

    whole = run(16)
    for max_rows in (1, 5):
        assert torch.equal(run(max_rows), whole[:max_rows])


@dataclass
class Layer:
    """The experts of a random layer: with biases where gates and ups are clamped and take turns, or else with the dense
    MLP's second product beside them. Neither depths nor columns are multiples of the tiles'."""

    kind: Callable[[Tensor], Weight] = PlainWeight
    dtype: torch.dtype = torch.float32
    activation: Activation = "gelu_tanh"
    num_experts: int = NUM_EXPERTS
    top_k: int = TOP_K
    hidden: int = HIDDEN
    inter: int = INTER
    dense: int = 56
    tiles: Tiles = TILES
    down_tiles: Tiles = TILES
    dense_tiles: Tiles = DENSE_TILES

    def __post_init__(self) -> None:
        count, kind, dtype = self.num_experts, self.kind, self.dtype
        growing = torch.arange(1, count + 1)[:, None, None] / count / 4  # no two experts have scales alike
        if self.clamped:
            growing = 4 * growing.sqrt()  # so that there is something to clamp
        self.gate_up = kind((noise(count, 2 * self.inter, self.hidden, seed=1) * growing).to(dtype))
        self.down = kind((noise(count, self.hidden, self.inter, seed=2) / 8).to(dtype))
        self.gate_up_bias = (2 * noise(count, 2 * self.inter, seed=3)).to(dtype) if self.clamped else None
        self.down_bias = noise(count, self.hidden, seed=4).to(dtype) if self.clamped else None
        self.dense_act = noise(16, self.dense, seed=5).to(dtype)
        self.dense_down = kind(noise(self.hidden, self.dense, seed=6).to(dtype))
        self.x, self.scores = noise(16, self.hidden, seed=7).to(dtype), noise(16, count, seed=8)

    @property
    def clamped(self) -> bool:
        return self.activation == "clamped_silu"

    def run(self, rows: int, first: int = 0, most: int = 16, out: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """What each pair of some rows adds, [rows, top_k, hidden] of a dtype, and the sums of the dense product's
        splits."""
        x, scores, act = (part.roll(-first, 0) for part in (self.x, self.scores, self.dense_act))
        chosen = used_before(self.num_experts, self.top_k, most)
        route_rows(scores, number(rows), torch.ones(self.num_experts), chosen, rows)
        inner = torch.full((16 * self.top_k, self.inter), float("nan"), dtype=x.dtype)
        added = torch.full((16, self.top_k, self.hidden), 7.0, dtype=out)
        sums = partial_sums(self.dense_tiles, self.hidden, CPU)
        dense = None if self.clamped else DenseDown(act, self.dense_down, sums, self.dense_tiles)
        expert_gate_up_rows(x, self.gate_up, chosen, inner, self.tiles, dense, rows, self.activation, self.gate_up_bias)
        expert_down_rows(inner, self.down, chosen, added, self.down_tiles, rows, self.down_bias)
        assert (added[rows:] == 7).all()
        return added[:rows], sums[:, :rows]

    def check(self, rows: int) -> tuple[Tensor, Tensor]:
        """What it runs, against the definition. bf16: the activations between the two products are rounded once, to 8
        bits."""
        weights, ids = route(self.scores[:rows], self.top_k, torch.ones(self.num_experts))
        gate_up, down = (PlainWeight(each.restored_for(self.dtype)) for each in (self.gate_up, self.down))
        biases = None
        if self.gate_up_bias is not None and self.down_bias is not None:
            biases = self.gate_up_bias.float(), self.down_bias.float()
        expected = experts(self.x[:rows].float(), weights, ids, gate_up, down, self.activation, biases)
        tolerance = 5e-6 if self.dtype is torch.float32 else 2**-8
        found, sums = self.run(rows)
        torch.testing.assert_close(found.sum(1), expected, atol=tolerance * float(expected.abs().max()), rtol=tolerance)
        if not self.clamped:
            alone = partial_sums(self.dense_tiles, self.hidden, CPU)
            project(self.dense_act, self.dense_down, alone, self.dense_tiles, rows)
            assert torch.equal(sums, alone[:, :rows]), "the dense product is the same beside the experts"
        return found, sums

    def check_bits(self, whole: Tensor, beside: Tensor, *some: tuple[int, int]) -> None:
        """That rows have the bits that they have among sixteen: so many from one on."""
        for rows, first in some:
            found, sums = self.run(rows, first)
            assert torch.equal(found, whole[first : first + rows]) and torch.equal(
                sums, beside[:, first : first + rows]
            )


def packed(kind: Callable[[Tensor], Weight]) -> Layer:
    """Three steps of gate and up over a depth that ends within the last; columns of all products cross an edge."""
    return Layer(
        kind, torch.bfloat16, "silu", num_experts=4, top_k=2, hidden=160, inter=96, dense=160,
        tiles=Tiles(columns=64, depth=64, warps=2, stages=2, programs=3),
        down_tiles=Tiles(columns=128, depth=64, warps=2, stages=3, programs=3),
        dense_tiles=Tiles(columns=128, depth=64, warps=2, splits=2),
    )  # fmt: skip


def clamped(kind: Callable[[Tensor], Weight], dtype: torch.dtype, num_experts: int = NUM_EXPERTS) -> Layer:
    """As gpt-oss has them."""
    tiles = Tiles(columns=64, depth=64, warps=2, programs=7)
    return Layer(kind, dtype, "clamped_silu", num_experts, hidden=96, inter=64, dense=64, tiles=tiles, down_tiles=tiles)


@pytest.mark.parametrize("kind", [Fp8Weight.of, Int4Weight.of], ids=["fp8", "int4"])  # MXFP4 is clamped, below
@pytest.mark.usefixtures("ordered_sums")
def test_packed_experts(kind: Callable[[Tensor], Weight]) -> None:
    """Alone a row has tiles of its own, of other columns and with more steps on their way."""
    layer = packed(kind)
    whole, beside = layer.check(16)
    expected = reference_project(layer.dense_act, layer.dense_down)
    torch.testing.assert_close(beside.sum(0), expected, atol=1e-4, rtol=1e-5)
    if kind == Int4Weight.of:
        assert torch.equal(layer.run(16, most=8)[0], whole), "in entries of eight"
    layer.check_bits(whole, beside, (5, 9))
    layer.tiles = replace(layer.tiles, columns=32, stages=3)
    layer.check_bits(whole, beside, (1, 6))


@pytest.mark.parametrize(
    ("rows", "kind", "dtype"),
    [
        (1, PlainWeight, torch.float32),
        (16, PlainWeight, torch.bfloat16),
        (5, Mxfp4Weight.of, torch.bfloat16),
        (16, Mxfp4Weight.of, torch.float32),
    ],
)
def test_clamped_experts_with_biases(rows: int, kind: Callable[[Tensor], Weight], dtype: torch.dtype) -> None:
    layer = clamped(kind, dtype)
    sums = layer.x.float() @ layer.gate_up.restored().flatten(0, 1).T
    assert (sums > CLAMP).any() and (sums < -CLAMP).any()
    layer.check(rows)
