"""Chooses the attention kernel that runs each layer: what was asked for, or what suits the layer and the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import torch

from ..commands import AttentionBackend
from ..errors import Option, UsageFailure
from ..kernels.prefill.attention import triton_attention
from ..kernels.reference.attention import AttentionFunction, flash_attention, sdpa_attention
from ..kernels.toolchain.card import LEAST_CAPABILITY, card_of
from ..kernels.toolchain.jit import HAS_TRITON
from ..layer_config import AttentionConfig

FLASH_MAX_HEAD_DIM = 256
SHORT_DTYPES = (torch.bfloat16, torch.float16)
TRITON_HEAD_DIMS = (16, 32, 64, 128, 256, 512)
ROUNDS_OTHER_GROUPS = (6,)
"""How many queries may share a key in device rounds, besides powers of two, in layers without a window. Six are
Qwen3.5-27B's, which was measured on a card; others were seen to be right in Triton's interpreter alone."""
ROUNDS_LEAST_HEAD_DIM = 32
"""The smallest heads for device rounds: attention behind a window multiplies by halves of a head, and a product's
operand has at least 16 channels."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to compute attention. ``why_not`` says what rules it out for a head size, device and dtype, or None."""

    name: str
    function: AttentionFunction
    why_not: Callable[[int, torch.device, torch.dtype], str | None]


def _flash_why_not(head_dim: int, device: torch.device, dtype: torch.dtype) -> str | None:
    if find_spec("flash_attn") is None:
        return "the package flash-attn isn't installed"
    if device.type != "cuda":
        return f"it needs a CUDA device, and this is {device.type}"
    if dtype not in SHORT_DTYPES:
        return f"it computes in 16 bits, not in {str(dtype).removeprefix('torch.')}"
    if head_dim > FLASH_MAX_HEAD_DIM:
        return f"its heads have at most {FLASH_MAX_HEAD_DIM} channels, some here have {head_dim}"
    return None


def _triton_why_not(head_dim: int, device: torch.device, dtype: torch.dtype) -> str | None:
    if not HAS_TRITON:
        return "the package triton isn't installed"
    if device.type != "cuda":
        return f"it needs a CUDA device, and this is {device.type}"
    if dtype not in SHORT_DTYPES:
        return f"its tiles are made for 16 bits, not for {str(dtype).removeprefix('torch.')}"
    if card_of(device).capability < LEAST_CAPABILITY:
        return "it needs a GPU of compute capability 8.0 or more"
    if head_dim not in TRITON_HEAD_DIMS:
        return f"the size of its heads is a power of two from 16 to 512, some here have {head_dim} channels"
    return None


SDPA = Backend("sdpa", sdpa_attention, lambda head_dim, device, dtype: None)
FLASH = Backend("flash_attn", flash_attention, _flash_why_not)

TRITON = Backend("triton", triton_attention, _triton_why_not)

NO_SINKS = "it knows no attention sinks"

BACKENDS = {backend.name: backend for backend in (SDPA, FLASH, TRITON)}

AUTO = (TRITON, SDPA)
"""The backends that ``auto`` tries, in this order. On a CPU sdpa beats the reference in most shapes and is level in the
rest (bundled pair, 1 to 256 rows over 100 to 4000 keys). flash_attn runs when it is asked for: nobody has measured it
here, and it can't take the targets' full layers."""


def choose_backends(
    wanted: AttentionBackend,
    layers: Sequence[AttentionConfig],
    device: torch.device,
    dtype: torch.dtype,
) -> list[Backend]:
    """One backend per layer. Raises ``UsageFailure`` when the one that is wanted can't run every layer."""
    candidates = AUTO if wanted == "auto" else (BACKENDS[wanted],)
    return [_choose(candidates, layer.head_dim, device, dtype, layer.sinks) for layer in layers]


def _choose(
    candidates: Sequence[Backend],
    head_dim: int,
    device: torch.device,
    dtype: torch.dtype,
    sinks: bool = False,
) -> Backend:
    reason: str | None = None
    for backend in candidates:
        reason = backend.why_not(head_dim, device, dtype)
        if sinks and backend is FLASH:
            reason = NO_SINKS
        if reason is None:
            return backend
    wanted = Option("attention_backend", candidates[-1].name)
    raise UsageFailure(
        (wanted, f" is not possible: {reason}."), ("Use ", Option("attention_backend", "auto"), ", or sdpa.")
    )


def why_host_rounds(
    wanted: AttentionBackend, layers: Sequence[AttentionConfig], device: torch.device, dtype: torch.dtype
) -> str | None:
    """Why the device can't run rounds, None if it can: their kernels have their own attention, so no other may be asked
    for."""
    if wanted not in ("auto", TRITON.name):
        return f"{wanted} was asked for"
    for layer in layers:
        reason = TRITON.why_not(layer.head_dim, device, dtype)
        if reason is not None:
            return reason
        if layer.head_dim < ROUNDS_LEAST_HEAD_DIM:
            return f"its heads have at least {ROUNDS_LEAST_HEAD_DIM} channels, some here have {layer.head_dim}"
        group = layer.num_heads // layer.num_kv_heads
        if group & (group - 1) and (group not in ROUNDS_OTHER_GROUPS or layer.window is not None):
            return f"a power of two of queries shares each key, here {group} do"
    return None


def auto_choice(head_dim: int, device: torch.device, dtype: torch.dtype) -> str:
    """The name of the backend that ``auto`` picks for heads of this size."""
    return _choose(AUTO, head_dim, device, dtype).name


def describe(backends: Sequence[Backend]) -> str:
    """The names in use, for people: one, or several joined by ``+``."""
    return "+".join(sorted({backend.name for backend in backends}))
