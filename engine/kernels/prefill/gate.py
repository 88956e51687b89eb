"""The gate of an MLP over many rows, dense or of experts: act(gate) * up, in one kernel."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ...layer_config import Activation
from ..shared.activation import activate
from ..toolchain.jit import cdiv, jit, tl
from ..weights.weight import Weight
from .products import multiply_many

COLUMNS = 1024
"""Of a program."""


def reference_gated(x: Tensor, activation: Activation = "gelu_tanh") -> Tensor:
    """act(gate) * up, [n, inter], of rows [gate | up] [n, 2 * inter]; fp32 until it is rounded, once."""
    gate, up = x.float().chunk(2, dim=-1)
    gate = F.silu(gate) if activation == "silu" else F.gelu(gate, approximate="tanh")
    return (gate * up).to(x.dtype)


def gated(x: Tensor, activation: Activation = "gelu_tanh") -> Tensor:
    """``reference_gated``."""
    n, doubled = x.shape
    inter = doubled // 2
    out = torch.empty(n, inter, dtype=x.dtype, device=x.device)
    _gated[(n, cdiv(inter, COLUMNS))](x, out, INTER=inter, SILU=activation == "silu", COLUMNS=COLUMNS, num_warps=4)
    return out


def gated_product(
    x: Tensor, weight: Weight, ends: Tensor | None = None, activation: Activation = "gelu_tanh"
) -> Tensor:
    """``gated`` of products of rows x with a weight [2 * inter, depth], gate first, or of experts whose rows end at
    ``ends``. Packed weights need no pass of their own for it."""
    if weight.unpacks_inside(x):
        return multiply_many(x, weight, ends, gate=activation)
    return gated(weight.linear(x) if ends is None else weight.grouped(x, ends), activation)


@jit
def _gated(x: tl.tensor, out: tl.tensor, INTER: tl.constexpr, SILU: tl.constexpr, COLUMNS: tl.constexpr) -> None:
    """Program (row, part of its columns)."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < INTER
    gate = tl.load(x + row * (2 * INTER) + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + row * (2 * INTER) + INTER + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * INTER + column, (activate(gate, SILU) * up).to(out.dtype.element_ty), mask=inside)
