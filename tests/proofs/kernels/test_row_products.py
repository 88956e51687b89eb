"""Small-row products against their definitions, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.products.dense import (
    Product,
    gate_up,
    partial_sums,
    project,
    project_two,
    reference_gate_up,
    reference_project,
)
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kernels.weights.fp8 import Fp8Weight
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.mxfp4 import Mxfp4Weight
from engine.kernels.weights.plain import PlainWeight
from engine.kernels.weights.weight import Weight
from engine.layer_config import Activation
from tests.kernels.tensors import CPU, FP32_AND_BF16, noise

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

SHAPES = pytest.mark.parametrize(
    ("columns", "depth", "tiles"),
    [
        (64, 128, Tiles(32, 32)),
        (33, 100, Tiles(16, 16, splits=3)),
        (16, 40, Tiles(16, 32, splits=4)),  # more splits than steps: some sum nothing
    ],
)


def plain(columns: int, depth: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> PlainWeight:
    return PlainWeight(noise(columns, depth, dtype=dtype, seed=seed))


@FP32_AND_BF16
@SHAPES
def test_sums_of_splits(columns: int, depth: int, tiles: Tiles, dtype: torch.dtype) -> None:
    x, weight = noise(16, depth, dtype=dtype), plain(columns, depth, dtype=dtype, seed=1)
    out = partial_sums(tiles, columns, CPU)
    project(x, weight, out, tiles)
    torch.testing.assert_close(out.sum(0), reference_project(x, weight), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("make", [PlainWeight, Int4Weight.of])
@pytest.mark.parametrize("max_rows", [1, 16])
def test_two_products_in_one_launch_have_the_bits_of_each_alone(
    make: Callable[[Tensor], Weight], max_rows: int
) -> None:
    x, few, many = noise(16, 192), plain(24, 192, seed=1), make(noise(48, 192, seed=2))
    few_tiles, many_tiles = Tiles(16, 64, splits=3, stages=2), Tiles(16, 64, warps=1, stages=3)

    def outs() -> tuple[Tensor, Tensor]:
        return partial_sums(few_tiles, 24, CPU), noise(16, 48, seed=3)

    alone, together = outs(), outs()
    project(x, few, alone[0], few_tiles, max_rows)
    project(x, many, alone[1], many_tiles, max_rows)
    project_two(x, Product(few, together[0], few_tiles), Product(many, together[1], many_tiles), max_rows)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


@FP32_AND_BF16
@pytest.mark.parametrize("activation", ["gelu_tanh", "silu"])
@pytest.mark.parametrize(("inter", "depth"), [(32, 64), (40, 72)])
def test_gate_up(inter: int, depth: int, activation: Activation, dtype: torch.dtype) -> None:
    x, weight = noise(16, depth, dtype=dtype), PlainWeight(noise(2 * inter, depth, dtype=dtype, seed=1) / 8)
    out = torch.zeros(16, inter, dtype=dtype)
    gate_up(x, weight, out, activation, Tiles(16, 32))
    expected = reference_gate_up(x.float(), weight, activation)
    tolerance = 1e-5 if dtype is torch.float32 else 2**-8
    torch.testing.assert_close(out.float(), expected, atol=1e-5, rtol=tolerance)


MAKERS: dict[str, Callable[[Tensor], Weight]] = {
    **{"int8": Int8Weight.of, "fp8": Fp8Weight.of, "int4": Int4Weight.of},
    **{"64": partial(Int4Weight.of, group=64), "mxfp4": Mxfp4Weight.of},
}
PACKED = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
PACKED_SHAPES = pytest.mark.parametrize(
    ("columns", "depth", "tiles"),
    [
        (64, 128, Tiles(32, 32, warps=1)),
        (48, 192, Tiles(32, 128, splits=2)),
        (16, 320, Tiles(32, 128, splits=3, warps=2)),
        (16, 64, Tiles(16, 32, splits=4, warps=1)),  # more splits than steps: some sum nothing
    ],
)


@PACKED
@PACKED_SHAPES
def test_a_packed_weight_is_its_restored_self(
    make: Callable[[Tensor], Weight], columns: int, depth: int, tiles: Tiles
) -> None:
    """In fp32 where a split may be empty, in bf16 elsewhere."""
    dtype = torch.float32 if tiles.splits > 3 else torch.bfloat16
    x, weight = noise(16, depth, dtype=dtype), make(noise(columns, depth, seed=1))
    out = partial_sums(tiles, columns, CPU)
    project(x, weight, out, tiles)
    torch.testing.assert_close(out.sum(0), reference_project(x, weight), atol=1e-4, rtol=1e-5)


@PACKED
@FP32_AND_BF16
@pytest.mark.parametrize(("inter", "depth"), [(32, 64), (48, 192)])
def test_gate_up_of_a_packed_weight(
    make: Callable[[Tensor], Weight], inter: int, depth: int, dtype: torch.dtype
) -> None:
    x, weight = noise(16, depth, dtype=dtype), make(noise(2 * inter, depth, seed=1) / 8)
    out = torch.zeros(16, inter, dtype=dtype)
    gate_up(x, weight, out, "silu", Tiles(16, 64, warps=2))
    expected = reference_gate_up(x, weight, "silu")
    torch.testing.assert_close(out, expected, atol=1e-4, rtol=2**-8 if dtype is torch.bfloat16 else 1e-4)


@pytest.mark.usefixtures("ordered_sums")
@pytest.mark.parametrize("make", [PlainWeight, *MAKERS.values()], ids=["plain", *MAKERS])
def test_a_row_has_the_same_bits_at_every_width(make: Callable[[Tensor], Weight]) -> None:
    x, weight = noise(16, 192).bfloat16(), make(noise(48, 192, seed=1).bfloat16())
    tiles = Tiles(16, 64, splits=2, warps=2)

    def products(max_rows: int) -> tuple[Tensor, Tensor]:
        sums, gated = partial_sums(tiles, 48, CPU).fill_(7), torch.full((16, 24), 7.0, dtype=x.dtype)
        project(x, weight, sums, tiles, max_rows)
        gate_up(x, weight, gated, "silu", replace(tiles, splits=1), max_rows)
        return sums, gated

    whole, gated = products(16)
    for max_rows in (1, 7):
        few, few_gated = products(max_rows)
        assert torch.equal(few[:, :max_rows], whole[:, :max_rows]) and (few[:, max_rows:] == 7).all()
        assert torch.equal(few_gated[:max_rows], gated[:max_rows]) and (few_gated[max_rows:] == 7).all()


@pytest.mark.parametrize("group", [32, 64])
def test_what_stands_behind_a_packed_weight_is_not_read(group: int) -> None:
    """Steps go past the end of the depth, by a part of a step and by whole ones."""
    made = Int4Weight.of(noise(16, 192, seed=1), group)
    assert made.scales is not None
    behind = torch.full((4 * made.scales.numel(),), float("nan"), dtype=made.scales.dtype)
    behind[: made.scales.numel()] = made.scales.flatten()
    weight = Int4Weight(made.values, behind[: made.scales.numel()].view(made.scales.shape))
    x, tiles = noise(16, 192, dtype=torch.bfloat16), Tiles(16, 64, splits=2, warps=2)
    out = partial_sums(tiles, 16, CPU)
    project(x, weight, out, tiles)
    torch.testing.assert_close(out.sum(0), reference_project(x, made), atol=1e-4, rtol=1e-5)
