"""The gate of an MLP over many rows, dense or of experts: act(gate) * up, in one kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from ...layer_config import Activation
from ..reference.moe import gated as reference_gate
from ..shared.activation import activate, activate_clamped
from ..toolchain.jit import cdiv, jit, tl
from ..weights.weight import Weight
from .products import multiply_many, product

COLUMNS = 1024
"""How many columns one program computes."""


def reference_gated(x: Tensor, activation: Activation = "gelu_tanh") -> Tensor:
    """act(gate) * up, [n, inter], of rows [gate | up] [n, 2 * inter], or, ``clamped_silu``, of gates and ups in turns;
    fp32 until it is rounded, once."""
    return reference_gate(x.float(), activation).to(x.dtype)


def gated(x: Tensor, activation: Activation = "gelu_tanh") -> Tensor:
    """``reference_gated`` of rows [n, 2 * inter], by a kernel: [n, inter]."""
    n, doubled = x.shape
    inter = doubled // 2
    out = torch.empty(n, inter, dtype=x.dtype, device=x.device)
    _gated[(n, cdiv(inter, COLUMNS))](
        x, out, INTER=inter, SILU=activation == "silu", CLAMPED=activation == "clamped_silu", COLUMNS=COLUMNS,
        num_warps=4,
    )  # fmt: skip
    return out


def gated_product(
    x: Tensor,
    weight: Weight,
    ends: Tensor | None = None,
    activation: Activation = "gelu_tanh",
    bias: Tensor | None = None,
) -> Tensor:
    """``gated`` of products of rows x with a weight [2 * inter, depth], as in ``reference_gated``, or of experts whose
    rows end at ``ends``; ``bias`` as in ``product``. Packed weights need no pass of their own for it."""
    if weight.unpacks_inside(x):
        return multiply_many(x, weight, ends, gate=activation, bias=bias)
    return gated(product(x, weight, ends, bias), activation)


@jit
def _gated(
    x: tl.tensor,
    out: tl.tensor,
    INTER: tl.constexpr,
    SILU: tl.constexpr,
    CLAMPED: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    """The kernel of ``gated``: a program for each (row, part of its columns)."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < INTER
    if CLAMPED:
        gate = tl.load(x + row * (2 * INTER) + 2 * column, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(x + row * (2 * INTER) + 2 * column + 1, mask=inside, other=0.0).to(tl.float32)
        act = activate_clamped(gate, up)
    else:
        gate = tl.load(x + row * (2 * INTER) + column, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(x + row * (2 * INTER) + INTER + column, mask=inside, other=0.0).to(tl.float32)
        act = activate(gate, SILU) * up
    tl.store(out + row * INTER + column, act.to(out.dtype.element_ty), mask=inside)
