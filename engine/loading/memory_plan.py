"""What a pair takes on its device, worked out from the configs before a byte of the weights is read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from ..commands import AttentionBackend
from ..decoding.decoder import PREFILL_CHUNK
from ..errors import DeviceFailure, Load, Option, Text
from ..hub.pairs import KNOWN_PAIRS
from ..kernels.decode.attention import AttendScratch
from ..kernels.weights.int8 import Int8Weight
from ..kernels.weights.kinds import bytes_of
from ..kv_cache.cache import Cache
from ..kv_cache.layer_state import StatefulLayer
from ..layer_config import AttentionConfig
from ..models.attention_backends import why_host_rounds
from ..models.dflash.modules import DFlashDrafter
from ..models.dflash.weights import DraftWeights
from ..models.family import TargetConfig
from .checkpoint import compute_dtype, read_drafter_config, read_target_config

GPU_RESERVE = 2_000_000_000
"""Bytes to leave on a GPU for a piece of a prompt on its way, what passes of 16 rows leave, and the libraries."""

CONTEXT_STEP = 1024
"""Contexts are suggested in multiples of this."""

META = torch.device("meta")
"""Where tensors have sizes and no memory."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes that a pair needs on a device, and what the device has."""

    target: tuple[StatefulLayer, ...]
    drafter: tuple[StatefulLayer, ...]
    """The layers of either; without a drafter none."""
    context: int
    weights: int
    available: int
    device: torch.device
    device_rounds: bool
    """Whether the device runs rounds by itself."""
    draft_copy: int
    """Of the 8-bit copies of embedding and drafter that these rounds would draft with; 0 where nothing drafts."""

    @property
    def caches(self) -> int:
        return self._caches(self.context)

    @property
    def scratch(self) -> int:
        """What attention's programs leave for one another in rounds that the device runs."""
        return self._scratch(self.context)

    @property
    def reserve(self) -> int:
        return GPU_RESERVE if self.device.type == "cuda" else 0

    @property
    def drafts_in_8_bits(self) -> bool:
        """Whether there is room for the copies: they make drafting faster, and are not needed."""
        return 0 < self.draft_copy <= self.available - self._needed(self.context)

    def describe(self) -> str:
        """One line for people."""
        rounds = self.scratch + (self.draft_copy if self.drafts_in_8_bits else 0)
        return (
            f"{_gigabytes(self.weights)} of weights and {_gigabytes(self.caches)} of caches for {self.context} tokens,"
            + (f" {_gigabytes(rounds)} to decode with," if rounds else "")
            + f" {_gigabytes(self.available)} {self._where()}"
        )

    def check(self) -> None:
        """Raises ``DeviceFailure``, saying what would fit, when this doesn't."""
        if self._needed(self.context) > self.available:
            raise DeviceFailure(f"This pair doesn't fit: {self.describe()}.", self._what_would_fit())

    def largest_context(self) -> int:
        """The most tokens, in steps of ``CONTEXT_STEP``, that there is room for beside the weights; 0 when none do."""
        low, high = 0, self.context // CONTEXT_STEP
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._needed(middle * CONTEXT_STEP) <= self.available
            low, high = (middle, high) if fits else (low, middle - 1)
        return low * CONTEXT_STEP

    def _needed(self, context: int) -> int:
        return self.weights + self._caches(context) + self._scratch(context) + self.reserve

    def _caches(self, context: int) -> int:
        return sum(cache.nbytes for cache in self._empty_caches(context))

    def _scratch(self, context: int) -> int:
        if not self.device_rounds:
            return 0
        caches = self._empty_caches(context)
        configs = [[layer for layer in layers if isinstance(layer, AttentionConfig)] for layers in self._models]
        return sum(
            AttendScratch(layers, [layer.capacity for layer in cache.attention], META).nbytes
            for layers, cache in zip(configs, caches, strict=True)
        )

    @property
    def _models(self) -> list[tuple[StatefulLayer, ...]]:
        return [layers for layers in (self.target, self.drafter) if layers]

    def _empty_caches(self, context: int) -> list[Cache]:
        """Of target and drafter, without memory."""
        dtype = compute_dtype(self.device)
        return [Cache(layers, context, PREFILL_CHUNK, dtype, META) for layers in self._models]

    def _where(self) -> str:
        return "free on the GPU" if self.device.type == "cuda" else "in this machine (the CPU computes in fp32)"

    def _what_would_fit(self) -> Text:
        if context := self.largest_context():
            return ("A shorter context would: ", Option("max_context", context), ".")
        per_parameter = compute_dtype(self.device).itemsize
        smaller = [p for p in KNOWN_PAIRS if p.num_parameters * per_parameter + self.reserve < self.available]
        if smaller:
            return ("A smaller model would: ", Load(smaller[-1].target), ".")
        return ("The bundled pair would: ", Load(), " without a model. Or use a machine with more memory.")


def plan_memory(
    target: Path,
    drafter: Path | None,
    context: int | None,
    device: torch.device,
    attention_backend: AttentionBackend = "auto",
) -> MemoryPlan:
    """Reads the folders' configs; ``context`` is cut to the model's (None: all of it). ``WeightsFailure`` for a damaged
    config or a foreign drafter."""
    config = read_target_config(target)
    draft_config = read_drafter_config(drafter, config) if drafter is not None else None
    draft_layers = draft_config.layers if draft_config is not None else ()
    dtype = compute_dtype(device)
    with META:
        model = config.build().to(dtype)
        draft_model = None if draft_config is None else draft_config.build().to(dtype)
    layers = (*config.attention, *draft_layers)
    device_rounds = model.has_decode_pass and why_host_rounds(attention_backend, layers, device, dtype) is None
    return MemoryPlan(
        target=config.layers,
        drafter=draft_layers,
        context=min(context or config.max_context, config.max_context),
        weights=bytes_of(model) + (0 if draft_model is None else bytes_of(draft_model)),
        available=available_memory(device),
        device=device,
        device_rounds=device_rounds,
        draft_copy=_draft_copy(config, draft_model) if device_rounds and draft_model is not None else 0,
    )


def available_memory(device: torch.device) -> int:
    """Bytes free on a GPU. For the CPU all that the machine has: other programs can be closed."""
    if device.type == "cuda":
        free: int = torch.cuda.mem_get_info(device)[0]
        return free
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _draft_copy(target: TargetConfig, drafter: DFlashDrafter) -> int:
    head = Int8Weight.allocate(target.vocab_size, target.hidden_size, device=META)
    return head.nbytes + DraftWeights.of(drafter, in_8_bits=True).nbytes


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e8 else f"{num_bytes / 1e6:.0f} MB"
