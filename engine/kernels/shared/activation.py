"""The activations of gated MLPs inside kernels."""

from __future__ import annotations

from ..toolchain.jit import jit, tl


@jit
def activate(gate: tl.tensor, SILU: tl.constexpr) -> tl.tensor:
    """SiLU or tanh-GELU, in fp32. tanh is written as a sigmoid: (1 + tanh y) / 2 = sigmoid(2 y)."""
    if SILU:
        return gate * tl.sigmoid(gate)
    return gate * tl.sigmoid(1.5957691216057308 * (gate + 0.044715 * gate * gate * gate))
