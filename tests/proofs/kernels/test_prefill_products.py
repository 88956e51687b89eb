"""Products of many rows with packed weights against what the weights stand for, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.kernels.prefill.gate import gated_product, reference_gated
from engine.kernels.prefill.products import ManyTiles, multiply_many, product
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kernels.weights.fp8 import Fp8Weight
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.mxfp4 import Mxfp4Weight
from engine.kernels.weights.plain import PlainWeight
from engine.kernels.weights.weight import Weight
from engine.layer_config import CLAMP
from tests.kernels.tensors import FP32_AND_BF16, noise

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

Make = Callable[[Tensor], Weight]
SMALL = ManyTiles(columns=32, rows=16, few=8, depth=64, warps=4, stages=2, fewest=4)


def with_scales(dtype: torch.dtype, group: int = 32) -> Make:
    def make(values: Tensor) -> Int4Weight:
        weight = Int4Weight.of(values, group)
        assert weight.scales is not None
        return Int4Weight(weight.values, weight.scales.float().mul(1.01).to(dtype))

    return make


PACKED = pytest.mark.parametrize(
    "make",
    [
        *(Int8Weight.of, Fp8Weight.of, Int4Weight.of, partial(Int4Weight.of, group=64)),
        *(with_scales(torch.float16), with_scales(torch.float32, 64), Mxfp4Weight.of),
    ],
    ids=["int8", "fp8", "int4", "64", "fp16", "fp32", "mxfp4"],
)


def close(found: Tensor, x: Tensor, weight: Tensor, gate: bool = False) -> None:
    """To products in fp32, of a weight in x's dtype: bf16 is rounded once before and once behind."""
    expected = F.linear(x.float(), weight.to(x.dtype).float())
    expected = reference_gated(expected) if gate else expected
    tolerance = 1e-5 if x.dtype is torch.float32 else 2**-7
    torch.testing.assert_close(found.float(), expected, atol=tolerance * float(expected.abs().max()), rtol=tolerance)


@PACKED
@FP32_AND_BF16
@pytest.mark.parametrize(
    ("rows", "columns", "depth"),
    [
        pytest.param(1, 16, 64, id="one row"),
        pytest.param(25, 16, 192, id="two tiles of many rows, the last with one more than few"),
        pytest.param(19, 16, 192, id="a tile of many rows and one of fewest"),
        pytest.param(33, 48, 64, id="a last row, and columns that fill no tile"),
    ],
)
def test_a_packed_weight_is_its_restored_self(
    make: Make, rows: int, columns: int, depth: int, dtype: torch.dtype
) -> None:
    x, weight = noise(rows, depth).to(dtype), make(noise(columns, depth, seed=1))
    close(multiply_many(x, weight, tiles=SMALL), x, weight.restored())


@pytest.mark.parametrize(
    "make",
    [Fp8Weight.of, Int4Weight.of, with_scales(torch.float16), Mxfp4Weight.of],
    ids=["fp8", "int4", "fp16", "mxfp4"],
)
@pytest.mark.parametrize("depth", [32, 96])
def test_a_depth_that_is_no_whole_step(make: Make, depth: int) -> None:
    x, weight = noise(5, depth), make(noise(16, depth, seed=1))
    close(multiply_many(x, weight, tiles=SMALL), x, weight.restored())


@PACKED
@pytest.mark.parametrize(
    ("ends", "gate", "dtype"),
    [
        pytest.param([5, 5, 40, 41, 41], True, torch.float32, id="none, one and many rows"),
        pytest.param([0, 0, 0, 0, 3], False, torch.bfloat16, id="the last expert alone"),
        pytest.param([16, 32, 48, 52, 57], True, torch.bfloat16, id="whole tiles, and few rows"),
    ],
)
def test_each_expert_multiplies_its_rows(make: Make, ends: list[int], gate: bool, dtype: torch.dtype) -> None:
    x, weight = noise(ends[-1], 128).to(dtype), make(noise(len(ends), 48, 128, seed=1) / 8)
    found = multiply_many(
        x, weight, torch.tensor(ends, dtype=torch.int32), gate="gelu_tanh" if gate else None, tiles=SMALL
    )
    for start, end, matrix in zip([0, *ends], ends, weight.restored(), strict=False):
        if end > start:
            close(found[start:end], x[start:end], matrix, gate)


@FP32_AND_BF16
def test_gates_in_turns_that_are_clamped_and_have_biases(dtype: torch.dtype) -> None:
    """As gpt-oss's experts: of a depth and of columns that fill no tile. Then its second product, whose biases are of
    the expert's outputs; by weights of every kind."""
    ends = torch.tensor([5, 5, 30, 31], dtype=torch.int32)
    weight, x = Mxfp4Weight.of(noise(4, 48, 96, seed=1)), noise(31, 96).to(dtype)
    bias, owner = (2 * noise(4, 48, seed=2)).to(dtype), torch.searchsorted(ends, torch.arange(31), right=True)
    sums = torch.einsum("nd,nrd->nr", x.float(), weight.restored()[owner]) + bias.float()[owner]
    assert (sums > CLAMP).any() and (sums < -CLAMP).any()
    tolerance = 1e-5 if dtype is torch.float32 else 2**-7
    close_to = partial(torch.testing.assert_close, atol=50 * tolerance, rtol=tolerance)
    found = multiply_many(x, weight, ends, gate="clamped_silu", bias=bias, tiles=SMALL)
    close_to(found.float(), reference_gated(sums, "clamped_silu"))
    close_to(multiply_many(x, weight, ends, bias=bias, tiles=SMALL).float(), sums)
    plain = PlainWeight(weight.restored().to(dtype))
    close_to(product(x, plain, ends, bias).float(), sums)
    close_to(gated_product(x, plain, ends, "clamped_silu", bias).float(), reference_gated(sums, "clamped_silu"))


@pytest.mark.parametrize("make", [Fp8Weight.of, Int4Weight.of, Mxfp4Weight.of], ids=["fp8", "int4", "mxfp4"])
@pytest.mark.usefixtures("ordered_sums")
def test_a_row_has_the_same_bits_in_any_company(make: Make) -> None:
    """Alone, in a tile of few rows, and in one of many; dense, and as an expert's."""
    x, weight = noise(30, 128).bfloat16(), make(noise(16, 128, seed=1))
    whole = multiply_many(x, weight, tiles=SMALL)
    for start, end in ((0, 1), (15, 30), (7, 10)):
        assert torch.equal(multiply_many(x[start:end].contiguous(), weight, tiles=SMALL), whole[start:end])
    experts = make(noise(16, 128, seed=1).expand(3, 16, 128))
    found = multiply_many(x, experts, torch.tensor([3, 10, 30], dtype=torch.int32), tiles=SMALL)
    assert torch.equal(found, whole)
