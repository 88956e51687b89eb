"""The activations of gated MLPs inside kernels."""

from __future__ import annotations

from ...layer_config import CLAMP, SHARPNESS
from ..toolchain.jit import jit, tl

LIMIT = tl.constexpr(CLAMP) if tl else CLAMP
STEEP = tl.constexpr(SHARPNESS) if tl else SHARPNESS


@jit
def activate(gate: tl.tensor, SILU: tl.constexpr) -> tl.tensor:
    """SiLU or tanh-GELU, in fp32. tanh is written as a sigmoid: (1 + tanh y) / 2 = sigmoid(2 y)."""
    if SILU:
        return gate * tl.sigmoid(gate)
    return gate * tl.sigmoid(1.5957691216057308 * (gate + 0.044715 * gate * gate * gate))


@jit
def activate_clamped(gate: tl.tensor, up: tl.tensor) -> tl.tensor:
    """``clamped_silu`` of gates and ups, in fp32."""
    gate = tl.minimum(gate, LIMIT)
    up = tl.minimum(tl.maximum(up, -LIMIT), LIMIT)
    return (up + 1) * (gate * tl.sigmoid(gate * STEEP))
