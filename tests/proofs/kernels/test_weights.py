"""Kinds of weights: what a module's tensors make, what they take, and parts of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from engine.kernels.weights.fp8 import Fp8Weight
from engine.kernels.weights.int4 import GROUPS, Int4Weight
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.kinds import PACKED, bytes_of, hold_in, weight_of
from engine.kernels.weights.mxfp4 import HIGHEST, PLACES, Mxfp4Weight
from engine.kernels.weights.plain import PlainWeight
from engine.kernels.weights.weight import Weight
from tests.kernels.tensors import noise

MAKERS: tuple[Callable[[Tensor], Weight], ...] = (
    PlainWeight, Int8Weight.of, Fp8Weight.of, Int4Weight.of, Mxfp4Weight.of
)  # fmt: skip
EVERY_KIND = pytest.mark.parametrize("make", MAKERS)


def holder(weight: Weight) -> nn.Module:
    """A module that holds a weight in place of a parameter."""
    module = nn.Module()
    module.weight = nn.Parameter(torch.empty(0))
    hold_in(module, "weight", weight)
    return module


def test_every_kind_that_kernels_read_has_a_format_of_its_own() -> None:
    weights = [make(noise(16, 32)) for make in MAKERS]
    assert len({weight.format for weight in weights}) == len(weights)
    assert {type(weight) for weight in weights} == {PlainWeight, Int8Weight, *PACKED.values()}


@EVERY_KIND
@pytest.mark.parametrize("shape", [(48, 32), (3, 48, 32)])
def test_a_module_holds_a_weight(make: Callable[[Tensor], Weight], shape: tuple[int, ...]) -> None:
    weight = make(noise(*shape))
    module = holder(weight)
    assert torch.equal(weight_of(module).restored(), weight.restored()) and weight_of(module).shape == shape
    assert weight_of(module).values.data_ptr() == weight.values.data_ptr() and bytes_of(module) == weight.nbytes
    hold_in(module, "weight", PlainWeight(noise(4, 8)))
    assert isinstance(weight_of(module), PlainWeight) and bytes_of(module) == 4 * 4 * 8


@EVERY_KIND
def test_a_weight_moves_with_its_module(make: Callable[[Tensor], Weight]) -> None:
    module = holder(make(noise(48, 32)))
    copy, before = deepcopy(module), weight_of(module)
    module.to("meta")
    assert weight_of(module).values.is_meta and weight_of(module).shape == (48, 32)
    assert weight_of(module).scales is None or weight_of(module).scales.is_meta  # type: ignore[union-attr]
    assert type(weight_of(copy)) is type(before) and bytes_of(copy) == bytes_of(module)
    assert torch.equal(weight_of(copy).restored(), before.restored())


@EVERY_KIND
@pytest.mark.parametrize("shape", [(48, 32), (3, 48, 32)])
def test_rows_are_a_view_and_lie_below_one_another(make: Callable[[Tensor], Weight], shape: tuple[int, ...]) -> None:
    weight = make(noise(*shape))
    parts = [weight.rows(0, 16), weight.rows(16, 48)]
    assert torch.equal(parts[1].restored(), weight.restored()[..., 16:48, :])
    assert parts[0].values.data_ptr() == weight.values.data_ptr()
    assert torch.equal(type(weight).below_one_another(parts).restored(), weight.restored())


@EVERY_KIND
def test_products_of_rows_sorted_by_expert(make: Callable[[Tensor], Weight]) -> None:
    x, weight = noise(7, 32), make(noise(3, 16, 32, seed=1))
    ends = torch.tensor([2, 2, 7], dtype=torch.int32)
    expected = torch.cat([x[:2] @ weight.restored()[0].T, x[2:] @ weight.restored()[2].T])
    torch.testing.assert_close(weight.grouped(x, ends), expected)


def test_fp8_rounds_each_row_to_its_own_scale() -> None:
    rows = noise(16, 64) * torch.logspace(-4, 2, 16)[:, None]
    rows[3] = 0
    weight = Fp8Weight.of(rows)
    assert ((weight.restored() - rows).abs() <= rows.abs() / 16 + rows.abs().amax(1, keepdim=True) * 2**-18).all()
    assert torch.equal(Fp8Weight.of(weight.restored()).restored(), weight.restored())


@pytest.mark.parametrize("group", GROUPS)
def test_int4_rounds_each_group_to_its_own_scale(group: int) -> None:
    rows = (noise(16, 256).unflatten(-1, (-1, group)) * noise(16, 256 // group, seed=1).exp()[..., None]).flatten(-2)
    weight = Int4Weight.of(rows, group)
    furthest = rows.unflatten(-1, (-1, group)).abs().amax(-1, keepdim=True).expand(-1, -1, group).flatten(-2)
    assert weight.group == group and weight.nbytes == 16 * 256 // 2 + 16 * 256 // group * 2
    assert ((weight.restored() - rows).abs() <= furthest / 8 * 1.01).all()  # +8 steps are cut to 7


def test_every_code_and_scale_of_mxfp4_is_what_the_format_says() -> None:
    """E2M1: with exponent bits e and mantissa bit m, 2^(e - 1) * (1 + m / 2), below the normal numbers m / 2. All
    are exact in fp32 and in bf16, and so are those that kernels multiply by, 2^5 times too small."""

    def meaning(code: int) -> float:
        exponent, half = code >> 1 & 3, code % 2 / 2
        magnitude = half if exponent == 0 else 2.0 ** (exponent - 1) * (1 + half)
        return -magnitude if code > 7 else magnitude

    scales = torch.arange(HIGHEST + 1, dtype=torch.uint8)[:, None]
    codes = torch.arange(16, dtype=torch.uint8).repeat(2).expand(len(scales), 32)
    numbers = torch.tensor([meaning(code) for code in range(16)] * 2, dtype=torch.float64)
    numbers = numbers * 2.0 ** (scales.double() - 127)
    assert torch.equal(Mxfp4Weight.floats(codes, scales).double(), numbers)
    assert torch.equal(Mxfp4Weight.floats(codes, scales).to(torch.bfloat16).double(), numbers)
    assert torch.equal((numbers / 32).to(torch.bfloat16).double(), numbers / 32)


def test_mxfp4_keeps_a_checkpoint_s_bits() -> None:
    assert sorted(place for places in PLACES for place in places) == list(range(32))
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 16, (2, 32, 96), generator=generator, dtype=torch.uint8)
    scales = torch.randint(40, HIGHEST + 1, (2, 32, 3), generator=generator, dtype=torch.uint8)
    weight = Mxfp4Weight.packed(codes, scales)
    assert torch.equal(weight.codes(), codes) and weight.shape == codes.shape
    assert weight.nbytes == codes.numel() // 2 + scales.numel()
    assert torch.equal(weight.restored(), Mxfp4Weight.floats(codes, scales))
    again = Mxfp4Weight.of(weight.restored())
    assert torch.equal(again.restored(), weight.restored())
