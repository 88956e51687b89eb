"""Plans what a pair takes on its device, from configs and headers, before a byte of the weights is read."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from ..commands import FORMAT_NAMES, AttentionBackend, WeightFormat
from ..decoding.decoder import GPU_PREFILL_CHUNK, PREFILL_CHUNK
from ..errors import Advice, DeviceFailure, Load, Option, Text
from ..hub.pairs import KNOWN_PAIRS, relatives
from ..hub.sizes import RESERVE, PairSize, size_of
from ..kernels.decode.attention.attend_rows import AttendScratch
from ..kernels.weights.int8 import Int8Weight
from ..kernels.weights.kinds import bytes_of
from ..kv_cache.cache import Cache
from ..kv_cache.layer_state import StatefulLayer
from ..layer_config import AttentionConfig
from ..machine import memory_bytes
from ..models.attention_backends import why_host_rounds
from ..models.dflash.modules import DFlashDrafter
from ..models.drafter import Drafter
from ..models.eagle3.modules import Eagle3
from ..models.family import DrafterConfig, KnownPair, TargetConfig
from ..models.packed import hold_shapes_in_fewer_bits
from ..models.target import TargetModel
from .checkpoint import compute_dtype, read_drafter_config, read_target_config, target_on_meta
from .stored_format import StoredFormat
from .work_memory import work_bytes

CONTEXT_STEP = 1024
"""Suggested contexts are multiples of this many tokens."""
LEAST_CONTEXT = 8192
"""The context that a smaller model must have room for, to be suggested."""

HOST_SHARE = 4
"""An embedding may take at most 1 / ``HOST_SHARE`` of the machine's memory, from which it can't be swapped out."""

META = torch.device("meta")
"""The device of tensors that have sizes and no memory."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """One way to hold what is needed for drafting."""

    nbytes: int
    """Bytes of the drafter and all copies."""
    packed: bool = False
    """Whether the drafter is held only in 8 bits."""
    head_in_8_bits: bool = False
    """Whether there is an 8-bit copy of the target's head, and unless ``packed`` one of the drafter: drafts are then
    faster."""

    @property
    def in_8_bits(self) -> bool:
        """Whether the drafter's products read 8 bits, the head's aside."""
        return self.packed or self.head_in_8_bits

    def __str__(self) -> str:
        what = "drafter in 8 bits" if self.packed else "drafter"
        copies = "head" if self.packed else "copies"
        return f"{what} and 8-bit {copies}" if self.head_in_8_bits else what


NO_DRAFTING = Drafting(0)


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The bytes that a pair needs on a device, and those that the device has."""

    target: tuple[StatefulLayer, ...]
    drafter: tuple[StatefulLayer, ...]
    """The layers of target and drafter, as far as they keep anything; none without a drafter."""
    context: int
    weights: WeightFormat
    """The format in which the target's weights are held."""
    target_bytes: int
    drafter_bytes: int
    """Bytes of the drafter as it was trained."""
    draftings: tuple[Drafting, ...]
    """Ways to hold what drafts, the fastest and largest first."""
    work: int
    """Bytes of a piece of a prompt's activations, and of the logits of a round."""
    available: int
    device: torch.device
    device_rounds: bool
    """Whether the device runs rounds by itself."""
    longest: int
    """The most tokens that the model takes."""
    hidden_size: int = 0
    """The target's hidden size; 0 if its shape isn't that of a published one."""
    cache_dtype: torch.dtype | None = None
    """The dtype of the target's keys and values; None for the one in which its device computes."""
    chunk: int = GPU_PREFILL_CHUNK
    """Rows of a prefill pass on a GPU."""
    packing: int = 0
    """Bytes of floats that are packed once all are loaded, and freed before there is a drafter or a cache."""
    on_host: int = 0
    """Bytes of an embedding that goes to the machine's memory once all is loaded; not among the target's."""

    @property
    def caches(self) -> int:
        return self._caches(self.context)

    @property
    def scratch(self) -> int:
        """Bytes that attention's programs leave for one another in rounds that the device runs."""
        return self._scratch(self.context)

    @property
    def reserve(self) -> int:
        return RESERVE if self.device.type == "cuda" else 0

    @property
    def drafting(self) -> Drafting:
        """The first way to hold what drafts that fits; the smallest where none does."""
        room = self.available - self.reserve - self._without_drafter(self.context)
        return next((each for each in self.draftings if each.nbytes <= room), self.draftings[-1])

    @property
    def allocated(self) -> int:
        """The most bytes that tensors take at a time: the sum of all, unless packing the target takes more."""
        return max(self._fixed + self.state_bytes(self.context), self._while_loading)

    @property
    def fits(self) -> bool:
        return self._needed(self.context) <= self.available

    def describe(self) -> str:
        """One line for people: the parts, the sum, and what the device has."""
        parts = [
            f"{gigabytes(self.target_bytes)} of weights",
            *([f"{gigabytes(self.on_host)} more, the embedding, in the machine's memory"] if self.on_host else []),
            *([f"{gigabytes(self.drafting.nbytes)} of {self.drafting}"] if self.drafter else []),
            f"{gigabytes(self.caches)} of caches for {self.context} tokens",
            *([f"{gigabytes(self.work + self.scratch)} to work with"] if self.work + self.scratch else []),
            *([f"prompts in pieces of {self.chunk}"] if self.chunk < GPU_PREFILL_CHUNK else []),
            *([f"at first {gigabytes(self.packing)} more of weights in fp32"] if self.packing else []),
        ]
        return f"{', '.join(parts)}: {self.summary()}"

    def summary(self) -> str:
        """The sum and what the device has, for people."""
        machine = "in this machine" if self.packing else "in this machine (the CPU computes in fp32)"
        where = "free on the GPU" if self.device.type == "cuda" else machine
        return f"{gigabytes(self.allocated)} of {gigabytes(self.available)} {where}"

    def check(self, instead: tuple[MemoryPlan, ...] = ()) -> None:
        """Raises ``DeviceFailure`` when the plan doesn't fit, and says what would. ``instead``: plans in other
        formats."""
        if not self.fits:
            reserve = f", and {gigabytes(self.reserve)} for the libraries" if self.reserve else ""
            message = f"This pair doesn't fit in {FORMAT_NAMES[self.weights]}: {self.describe()}{reserve}."
            raise DeviceFailure(message, self._what_would_fit(instead))

    def largest_context(self) -> int:
        """The most tokens, a multiple of ``CONTEXT_STEP``, for which there is room beside the weights; 0 when there is
        none."""
        low, high = 0, self.context // CONTEXT_STEP
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._needed(middle * CONTEXT_STEP) <= self.available
            low, high = (middle, high) if fits else (low, middle - 1)
        return low * CONTEXT_STEP

    def roomier(self) -> MemoryPlan:
        """The plan with more context where nobody asked for less: up to what the model takes, in steps of
        ``CONTEXT_STEP``, while caches take at most half of what is left. What drafts is held as in this plan."""
        most = (self.available - self.reserve - self._fixed) // 2
        low, high = self.context // CONTEXT_STEP, self.longest // CONTEXT_STEP
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.state_bytes(middle * CONTEXT_STEP) <= most else (low, middle - 1)
        return replace(self, context=max(self.context, low * CONTEXT_STEP))

    def _needed(self, context: int) -> int:
        running = self._without_drafter(context) + self.draftings[-1].nbytes
        return max(running, self._while_loading) + self.reserve

    @property
    def _while_loading(self) -> int:
        return self.target_bytes + self.packing + self.on_host

    @property
    def _fixed(self) -> int:
        """Bytes, while answers are given, that don't depend on the context."""
        return self.target_bytes + self.work + self.drafting.nbytes

    def state_bytes(self, context: int) -> int:
        """Bytes of caches and scratch memory with a context of ``context`` tokens."""
        return self._caches(context) + self._scratch(context)

    def _without_drafter(self, context: int) -> int:
        return self.target_bytes + self.state_bytes(context) + self.work

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
        """Caches of target and drafter without memory."""
        dtype = compute_dtype(self.device)
        target, *drafter = self._models
        held = [(target, self.cache_dtype or dtype), *((layers, dtype) for layers in drafter)]
        return [_empty_cache(layers, context, dtype) for layers, dtype in held]

    def _what_would_fit(self, instead: tuple[MemoryPlan, ...]) -> Text:
        """Says what would fit: another format, a shorter context, a smaller model, each with what it takes."""
        ways: list[tuple[Advice, str]] = [
            (Option("weights", other.weights), gigabytes(other.allocated)) for other in instead if other.fits
        ]
        if context := self.largest_context():
            ways.append((Option("max_context", context), gigabytes(self._needed(context) - self.reserve)))
        own, family = relatives(self.hidden_size, len(self.target))
        if smaller := self._smaller_of(own, family) or self._smaller_of(own, KNOWN_PAIRS):
            size, weights = smaller
            on_gpu = self.device.type == "cuda"
            nbytes = size.least(weights, LEAST_CONTEXT) if on_gpu else 2 * size.plain(LEAST_CONTEXT)
            name = FORMAT_NAMES[weights] if on_gpu else "fp32"
            ways.append((Load(size.target), f"{gigabytes(nbytes)} in {name} with {LEAST_CONTEXT} tokens"))
        if not ways:
            return ("The bundled pair would: ", Load(), " without a model. Or use a machine with more memory.")
        words: list[str | Advice] = ["What would: "]
        for number, (advice, needs) in enumerate(ways):
            words += [", " if number else "", advice, f" ({needs})"]
        return (*words, ".")

    def _smaller_of(self, own: KnownPair | None, pairs: tuple[KnownPair, ...]) -> tuple[PairSize, WeightFormat] | None:
        """The largest of ``pairs`` that fits and has fewer parameters than ``own`` (or, if this is no published pair,
        smaller weights), and the most exact format in which it fits; None where none does."""
        on_gpu, room = self.device.type == "cuda", self.available - self.reserve
        formats: tuple[WeightFormat, ...] = get_args(WeightFormat) if on_gpu else ("bf16",)
        fitting = [
            (pair.num_parameters, (size, weights))
            for pair, weights in product(pairs, formats)
            if (size := size_of(pair.target)) is not None
            and weights in size.weights
            and (pair.num_parameters < own.num_parameters if own else size.weights[weights] < self.target_bytes)
            and (size.least(weights, LEAST_CONTEXT) if on_gpu else 2 * size.plain(LEAST_CONTEXT)) <= room
        ]
        return max(fitting, key=lambda each: (each[0], each[1][0].weights[each[1][1]]), default=(0, None))[1]


@lru_cache(maxsize=64)
def _empty_cache(layers: tuple[StatefulLayer, ...], context: int, dtype: torch.dtype) -> Cache:
    """A cache without memory. Choosing a context asks for the same ones again and again."""
    return Cache(layers, context, PREFILL_CHUNK, dtype, META)


def plan_memory(
    target: Path,
    drafter: Path | None,
    context: int | None,
    device: torch.device,
    attention_backend: AttentionBackend = "auto",
    weights: WeightFormat = "bf16",
    in_fewer_bits: StoredFormat | None = None,
    chunk: int = GPU_PREFILL_CHUNK,
    embedding_on_host: bool = False,
) -> MemoryPlan:
    """Plans from the folders' configs, and from the weights' headers unless they are to be held in bf16. ``context`` is
    capped at the model's own (None: all of it). ``in_fewer_bits``: the stored format of floats that a CPU packs after
    loading. ``embedding_on_host``: where the device runs the rounds and the head is a matrix of its own. Raises
    ``WeightsFailure`` for damaged files or a drafter of another target."""
    config = read_target_config(target)
    draft_config = read_drafter_config(drafter, config, target) if drafter is not None else None
    model = target_on_meta(target, device, attention_backend, weights)
    packing = 0 if in_fewer_bits is None else hold_shapes_in_fewer_bits(model, in_fewer_bits.in_levels)
    layers = (*config.attention, *(draft_config.layers if draft_config is not None else ()))
    host = why_host_rounds(attention_backend, layers, device, compute_dtype(device))
    return plan_of(
        model,
        draft_config,
        context or config.max_context,
        device,
        weights,
        available_memory(device),
        device_rounds=model.has_decode_pass and host is None,
        packing=packing,
        chunk=chunk,
        embedding_on_host=embedding_on_host and _embedding_bytes(model) * HOST_SHARE <= (memory_bytes() or sys.maxsize),
    )


def plan_of(
    model: TargetModel,
    drafter: DrafterConfig | None,
    context: int,
    device: torch.device,
    weights: WeightFormat,
    available: int,
    *,
    device_rounds: bool,
    packing: int = 0,
    chunk: int = GPU_PREFILL_CHUNK,
    embedding_on_host: bool = False,
) -> MemoryPlan:
    config, drafter_bytes = model.config, 0
    on_host = _embedding_bytes(model) if embedding_on_host and device_rounds else 0
    draftings: tuple[Drafting, ...] = (NO_DRAFTING,)
    if drafter is not None:
        with META:
            modules = drafter.build().to(compute_dtype(device))
        drafter_bytes = bytes_of(modules)
        if device_rounds:
            draftings = _draftings(config, modules)
        elif model.packed_head is not None and isinstance(modules, DFlashDrafter | Eagle3):
            products = [parameter for _, parameter in modules.products()]
            rest = drafter_bytes - sum(parameter.nbytes for parameter in products)
            draftings = (Drafting(rest + _in_8_bits(products), packed=True),)
        else:
            draftings = (Drafting(drafter_bytes),)
    return MemoryPlan(
        target=config.layers,
        drafter=() if drafter is None else drafter.states,
        hidden_size=config.hidden_size,
        context=min(context, config.max_context),
        weights=weights,
        target_bytes=bytes_of(model) - on_host + (0 if model.packed_head is None else model.packed_head.nbytes),
        drafter_bytes=drafter_bytes,
        draftings=draftings,
        work=work_bytes(model, drafter, compute_dtype(device).itemsize, chunk) if device.type == "cuda" else 0,
        available=available,
        device=device,
        device_rounds=device_rounds,
        longest=config.max_context,
        cache_dtype=model.cache_dtype,
        chunk=chunk,
        packing=packing,
        on_host=on_host,
    )


def _embedding_bytes(target: TargetModel) -> int:
    """Bytes of an embedding that can lie apart from the rest: none of one that is the head as well."""
    table = target.embed_tokens.weight
    return 0 if target.head is table else table.nbytes


def available_memory(device: torch.device) -> int:
    """Bytes free on a GPU; on a CPU all that the machine has, since other programs can be closed."""
    if device.type == "cuda":
        free: int = torch.cuda.mem_get_info(device)[0]
        return free
    return memory_bytes() or sys.maxsize  # where nobody tells, the system will say when there is no more


def _draftings(target: TargetConfig, drafter: Drafter) -> tuple[Drafting, ...]:
    """The ways to hold what drafts, for a drafter on ``meta``. They are computed from sizes alone: joining or rounding
    tensors there would import torch's compiler, which takes as long as all other imports."""
    plain, products = bytes_of(drafter), [parameter for _, parameter in drafter.products()]
    if not products:
        return (Drafting(plain),)
    # Keys and values of a DFlash drafter's layers are copied once more, to lie below one another.
    stacked = ("k_proj.weight", "v_proj.weight") if isinstance(drafter, DFlashDrafter) else ()
    context = [parameter for name, parameter in drafter.named_parameters() if name.endswith(stacked)]
    own_head = drafter.config.tables.head  # then among its products
    head = 0 if own_head else Int8Weight.allocate(target.vocab_size, target.hidden_size, device=META).nbytes
    copies = _in_8_bits(products) + _in_8_bits(context)
    alone = plain - sum(parameter.nbytes for parameter in products) + copies
    return (
        Drafting(plain + copies + head, head_in_8_bits=True),
        Drafting(alone + head, packed=True, head_in_8_bits=True),
        Drafting(alone, packed=True),
    )


def _in_8_bits(parts: Iterable[Tensor]) -> int:
    """The bytes that these matrices would take in 8 bits."""
    return sum(Int8Weight.allocate(*parameter.shape, device=META).nbytes for parameter in parts)


def gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e8 else f"{num_bytes / 1e6:.0f} MB"
