"""The gate of an MLP over many rows, dense or of experts: act(gate) * up, in one kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from ...layer_config import Activation
from ..reference import moe
from ..shared.activation import activate, activate_clamped
from ..toolchain.jit import cdiv, jit, power_of_two, tl
from ..weights.weight import Weight
from .products import multiply_many

COLUMNS = 1024
"""Of a program."""


def reference_gated(x: Tensor, activation: Activation = "gelu_tanh") -> Tensor:
    """``moe.gated`` of rows [n, 2 * inter]; fp32 until it is rounded, once."""
    return moe.gated(x.float(), activation).to(x.dtype)


def gated(
    x: Tensor, activation: Activation = "gelu_tanh", ends: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """``reference_gated``. With a ``bias`` [experts, 2 * inter], of ``clamped_silu`` alone: of rows plus those of their
    experts, whose rows end at ``ends`` int32 [experts]."""
    n, doubled = x.shape
    inter, experts = doubled // 2, 0 if ends is None else len(ends)
    assert bias is None or (activation == "clamped_silu" and bias.shape == (experts, doubled))
    out = torch.empty(n, inter, dtype=x.dtype, device=x.device)
    _gated[(n, cdiv(inter, COLUMNS))](
        x, bias, None if bias is None else ends, out,
        INTER=inter, SILU=activation == "silu", CLAMPED=activation == "clamped_silu", COLUMNS=COLUMNS,
        EXPERTS=0 if bias is None else experts, BLOCK_E=power_of_two(experts), num_warps=4,
    )  # fmt: skip
    return out


def gated_product(
    x: Tensor,
    weight: Weight,
    ends: Tensor | None = None,
    activation: Activation = "gelu_tanh",
    bias: Tensor | None = None,
) -> Tensor:
    """``gated`` of products of rows x with a weight [2 * inter, depth], or of experts whose rows end at ``ends``.
    Packed weights need no pass of their own for it."""
    if weight.unpacks_inside(x):
        return multiply_many(x, weight, ends, gate=activation, bias=bias)
    return gated(weight.linear(x) if ends is None else weight.grouped(x, ends), activation, ends, bias)


@jit
def _gated(
    x: tl.tensor, bias: tl.tensor, ends: tl.tensor, out: tl.tensor,
    INTER: tl.constexpr, SILU: tl.constexpr, CLAMPED: tl.constexpr, COLUMNS: tl.constexpr, EXPERTS: tl.constexpr,
    BLOCK_E: tl.constexpr,
) -> None:  # fmt: skip
    """Program (row, part of its columns)."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < INTER
    if CLAMPED:  # gates and ups take turns
        place = tl.program_id(1) * (2 * COLUMNS) + tl.arange(0, 2 * COLUMNS)
        both = tl.load(x + row * (2 * INTER) + place, mask=place < 2 * INTER, other=0.0).to(tl.float32)
        if bias is not None:
            number = tl.arange(0, BLOCK_E)
            end = tl.load(ends + number, mask=number < EXPERTS, other=0)
            expert = tl.sum(((end <= row) & (number < EXPERTS)).to(tl.int32), axis=0)
            both += tl.load(bias + expert * (2 * INTER) + place, mask=place < 2 * INTER, other=0.0).to(tl.float32)
        gate, up = tl.split(tl.reshape(both, [COLUMNS, 2]))
        act = activate_clamped(gate, up)
    else:
        gate = tl.load(x + row * (2 * INTER) + column, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(x + row * (2 * INTER) + INTER + column, mask=inside, other=0.0).to(tl.float32)
        act = activate(gate, SILU) * up
    tl.store(out + row * INTER + column, act.to(out.dtype.element_ty), mask=inside)
