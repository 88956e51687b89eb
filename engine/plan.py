"""What a pair takes on its device, worked out from the configs before a byte of the weights is read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from .cache import cache_bytes
from .checkpoint import compute_dtype, read_drafter_config, read_target_config
from .config import AttentionConfig, DrafterConfig, TargetConfig
from .decoder import PREFILL_CHUNK
from .errors import DeviceFailure
from .hub.pairs import KNOWN_PAIRS
from .models.dflash import DFlashDrafter
from .models.gemma4 import Gemma4

GPU_RESERVE = 2_000_000_000
"""Bytes to leave on a GPU for a piece of a prompt on its way, what rounds keep ready, and the libraries."""

CONTEXT_STEP = 1024
"""Contexts are suggested in multiples of this."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes that a pair needs on a device, and what the device has."""

    layers: tuple[AttentionConfig, ...]
    """The target's and the drafter's."""
    context: int
    weights: int
    available: int
    device: torch.device

    @property
    def caches(self) -> int:
        return self._caches(self.context)

    @property
    def reserve(self) -> int:
        return GPU_RESERVE if self.device.type == "cuda" else 0

    def describe(self) -> str:
        """One line for people."""
        return (
            f"{_gigabytes(self.weights)} of weights and {_gigabytes(self.caches)} of caches for {self.context} tokens,"
            f" {_gigabytes(self.available)} {self._where()}"
        )

    def check(self) -> None:
        """Raises ``DeviceFailure``, saying what would fit, when this doesn't."""
        if self.weights + self.caches + self.reserve > self.available:
            raise DeviceFailure(f"This pair doesn't fit: {self.describe()}.", self._what_would_fit())

    def largest_context(self) -> int:
        """The most tokens, in steps of ``CONTEXT_STEP``, whose caches fit beside the weights; 0 when none do."""
        low, high = 0, self.context // CONTEXT_STEP
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.weights + self._caches(middle * CONTEXT_STEP) + self.reserve <= self.available
            low, high = (middle, high) if fits else (low, middle - 1)
        return low * CONTEXT_STEP

    def _caches(self, context: int) -> int:
        return cache_bytes(self.layers, context, PREFILL_CHUNK, compute_dtype(self.device))

    def _where(self) -> str:
        return "free on the GPU" if self.device.type == "cuda" else "in this machine (the CPU computes in fp32)"

    def _what_would_fit(self) -> str:
        if context := self.largest_context():
            return f"A shorter context would: --context {context}."
        per_parameter = compute_dtype(self.device).itemsize
        smaller = [p for p in KNOWN_PAIRS if p.num_parameters * per_parameter + self.reserve < self.available]
        if smaller:
            return f"A smaller model would: dflash-chat {smaller[-1].target}."
        return "The bundled pair would: dflash-chat without a model. Or use a machine with more memory."


def plan_memory(target: Path, drafter: Path | None, context: int | None, device: torch.device) -> MemoryPlan:
    """Reads the configs in these folders. ``context`` is cut to what the model was made for; None is that itself.

    Raises ``WeightsFailure`` for a damaged config, or a drafter that was made for another target.
    """
    config = read_target_config(target)
    draft_config = read_drafter_config(drafter, config) if drafter is not None else None
    return MemoryPlan(
        layers=(*config.layers, *(draft_config.layers if draft_config else ())),
        context=min(context or config.max_context, config.max_context),
        weights=_count_parameters(config, draft_config) * compute_dtype(device).itemsize,
        available=available_memory(device),
        device=device,
    )


def available_memory(device: torch.device) -> int:
    """Bytes free on a GPU. For the CPU all that the machine has: other programs can be closed."""
    if device.type == "cuda":
        free: int = torch.cuda.mem_get_info(device)[0]
        return free
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _count_parameters(target: TargetConfig, drafter: DrafterConfig | None) -> int:
    with torch.device("meta"):
        models: list[nn.Module] = [Gemma4(target)]
        if drafter is not None:
            models.append(DFlashDrafter(drafter))
    return sum(parameter.numel() for model in models for parameter in model.parameters())


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e8 else f"{num_bytes / 1e6:.0f} MB"
