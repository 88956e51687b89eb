"""Chooses the format in which a target's weights are held, with its plan: what was asked for, what the files hold, or
the best that fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from ..commands import AUTO, FORMAT_NAMES, MADE_FORMATS, EngineOptions, WeightFormat
from ..decoding.decoder import LEAST_PREFILL_CHUNK
from ..hub.pairs import PairFolders, pair_of
from ..kernels.weights.host_products import NIBBLES, HostProducts
from ..measured.host_products import host_products
from .memory_plan import MemoryPlan, available_memory, gigabytes, plan_memory
from .stored_format import StoredFormat, stored_format


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """The format that was chosen, and those that were not."""

    plan: MemoryPlan
    stored: StoredFormat
    others: tuple[MemoryPlan, ...]
    """Plans in formats that were considered before."""
    qat: str = ""
    """The name of a checkpoint of this model that was trained for INT4, where rounding makes this one."""
    products: HostProducts | None = None
    """How a CPU multiplies by 4 or 8 bits; None where it multiplies floats. The file held blocks of as few bits."""

    def describe(self) -> str:
        """One line: the format, what it takes, and why it was chosen."""
        plan = self.plan
        if self.in_fewer_bits:
            return f"{self.stored} multiplied in as few bits; held as bf16 it computes in fp32, several times as slow"
        sentences = [f"{self._name}: {plan.summary()}"]
        sentences += [
            f"{FORMAT_NAMES[other.weights]} would need {gigabytes(other.allocated)}" for other in self.others[:1]
        ]
        if self.qat:
            sentences.append(f"rounded from bf16 here: {self.qat} was trained for INT4 and answers better")
        if plan.weights != "bf16" and plan.device.type == "cpu":
            sentences.append("slow on a CPU, which unpacks all weights for every pass")
        return "; ".join(sentences)

    @property
    def in_fewer_bits(self) -> bool:
        return self.products is not None

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to explain: floats as they are stored, or as always on a CPU."""
        has_remarks = self.others or self.in_fewer_bits or self.stored.unpacked
        return self.plan.weights == self.stored.weights == "bf16" and not has_remarks

    @property
    def _name(self) -> str:
        stored, weights = self.stored.weights, self.plan.weights
        if self.stored.unpacked:
            return f"{FORMAT_NAMES[weights]}, {'unpacked' if weights == 'bf16' else 'rounded'} from {self.stored}"
        if stored == weights:
            return str(self.stored)
        return f"{FORMAT_NAMES[weights]}, unpacked from {self.stored}" if weights == "bf16" else FORMAT_NAMES[weights]


def choose_weights(options: EngineOptions, folders: PairFolders, context: int, device: torch.device) -> WeightPlan:
    """The plan for loading a pair with a context of ``context`` tokens. Raises ``DeviceFailure`` where nothing fits,
    ``WeightsFailure`` for files that are damaged or in a format with which the engine can't compute, ``UsageFailure``
    for packed weights that would have to be packed otherwise."""
    stored = stored_format(folders.target, available_memory(device))
    products = host_products() if options.weights == AUTO and device.type == "cpu" and stored.blocks else None
    if products is not None and not products.in_fewer_bits(stored.in_levels):
        products = None
    as_held = None
    if products is not None:
        as_held = replace(stored, in_levels=stored.in_levels and products.on_levels == NIBBLES)
    plans: list[MemoryPlan] = []
    where = folders.target, folders.drafter, context, device, options.attention_backend
    for weights in _candidates(options, stored, device):
        plans.append(plan_memory(*where, weights, as_held))
        if plans[-1].fits:
            break
    if not plans[-1].fits and device.type == "cuda":
        plans[-1] = tighter(partial(plan_memory, *where, plans[-1].weights, as_held))
    chosen = plans[-1]
    if not chosen.fits:
        chosen.check(_instead(options, folders, stored, chosen))
    rounded = chosen.weights == "int4" != stored.weights and "qat" not in f"{folders.name} {folders.target}".lower()
    pair = pair_of(folders.target) if rounded else None
    return WeightPlan(chosen, stored, tuple(plans[:-1]), pair.qat if pair is not None else "", products)


def tighter(plan: Callable[..., MemoryPlan]) -> MemoryPlan:
    """The first plan that fits: with prompts in smaller pieces, or with the embedding in the machine's memory, or both;
    the last where none does. ``plan`` makes one, given ``chunk`` and ``embedding_on_host``."""
    small = {"chunk": LEAST_PREFILL_CHUNK}
    ways = (small, {"embedding_on_host": True}, {**small, "embedding_on_host": True})
    plans = [plan(**way) for way in ways]
    return next((each for each in plans if each.fits), plans[-1])


def _candidates(options: EngineOptions, stored: StoredFormat, device: torch.device) -> Sequence[WeightFormat]:
    if options.weights != AUTO:
        return (options.weights,)
    if stored.weights != "bf16" or device.type == "cpu":
        return (stored.weights,)
    return MADE_FORMATS


def _instead(
    options: EngineOptions, folders: PairFolders, stored: StoredFormat, plan: MemoryPlan
) -> tuple[MemoryPlan, ...]:
    """Plans of the same pair with fewer bits, where the files allow it."""
    fewer = MADE_FORMATS[MADE_FORMATS.index(plan.weights) + 1 :] if plan.weights in MADE_FORMATS else ()
    possible = [weights for weights in fewer if stored.weights in ("bf16", weights)]
    where = folders.target, folders.drafter, plan.context, plan.device, options.attention_backend
    return tuple(
        plan_memory(*where, weights, chunk=plan.chunk, embedding_on_host=plan.on_host > 0) for weights in possible
    )
