"""Finds out how a CPU best multiplies by a target's weights, by timing each kind that it has: a second at the first
start."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import Any

import torch

from ..kernels.weights.host_products import HOST_MAKERS, HostProducts, for_head, for_levels, for_others
from ..kernels.weights.weight import Weight
from ..machine import cpu_name
from .store import store, stored

SECONDS = 1.0
ROWS = (1, 4, 16)
"""Row counts that are timed: a pass without drafts, with a few, and with all."""
SHAPE = 1536, 576
MATRICES = 12
"""How many matrices are multiplied in turn, so that other data lies between two uses of one, as in a model: 42 MB in
fp32."""
HEAD_SHAPE = 16384, 576
MARGIN = 1.25
"""How many times faster than the first of a list another kind must be to be chosen: a busy minute must not settle how
rows are rounded."""

Times = Mapping[str, Sequence[float]]
"""By kind, the seconds for each of ``ROWS``."""


@cache
def host_products() -> HostProducts:
    """The kinds for this CPU, kept on disk for it, for PyTorch and for this number of threads; measured where there are
    none."""
    capability = torch.backends.cpu.get_cpu_capability()
    offered = for_levels(), for_others(), for_head()
    machine = cpu_name(), platform.machine(), torch.__version__, capability
    identity = (*machine, str(torch.get_num_threads()), str(offered))
    products = stored("products", identity, products_of)
    if products is None:
        products = _measured()
        store("products", identity, {"on_levels": products.on_levels, "others": products.others, "head": products.head})
    return products


def products_of(data: Mapping[str, Any]) -> HostProducts:
    """The kinds from their JSON. Raises ``ValueError`` or ``KeyError`` for what is none, or not of this CPU."""
    products = HostProducts(data["on_levels"], data["others"], data["head"])
    if products.on_levels in for_levels() and products.others in for_others() and products.head in for_head():
        return products
    raise ValueError("not products of this CPU")


def fastest(offered: Sequence[str], times: Times) -> str:
    """The kind with the least sum of times over all ``ROWS``, each relative to the fastest kind at that number of rows.
    The first of ``offered`` stands unless another one is faster by ``MARGIN``."""
    least = [min(times[kind][index] for kind in offered) for index in range(len(ROWS))]
    worth = {kind: sum(time / best for time, best in zip(times[kind], least, strict=True)) for kind in offered}
    best = min(offered, key=worth.__getitem__)
    return best if worth[offered[0]] > MARGIN * worth[best] else offered[0]


@torch.inference_mode()
def _measured() -> HostProducts:
    layers, head = for_levels(), for_head()  # for_others() is a part of the former
    of_layers = _times(layers, SHAPE, MATRICES, SECONDS * 2 / 3)
    of_head = _times(head, HEAD_SHAPE, 1, SECONDS / 3)
    return HostProducts(fastest(layers, of_layers), fastest(for_others(), of_layers), fastest(head, of_head))


def _times(kinds: Sequence[str], shape: tuple[int, int], matrices: int, seconds: float) -> Times:
    """The least seconds of each kind, timed in turns for ``seconds``, but at least twice."""
    rows, depth = shape
    numbers = torch.arange(rows * depth).mul_(7919).remainder_(16).view(rows, depth).float()
    numbers[:, ::32], numbers[:, 1::32] = 0, 15  # the smallest and largest number of each group
    weights = {kind: [_made(kind, numbers + index) for index in range(matrices)] for kind in kinds}
    wide = {count: torch.linspace(-1, 1, count * depth).view(count, depth) for count in ROWS}
    times = {kind: [float("inf")] * len(ROWS) for kind in kinds}
    began, turns = perf_counter(), 0
    while turns < 2 or perf_counter() - began < seconds:
        for kind in kinds:
            for index, count in enumerate(ROWS):
                started = perf_counter()
                for weight in weights[kind]:
                    weight.linear(wide[count])
                times[kind][index] = min(times[kind][index], perf_counter() - started)
        turns += 1
    return times


def _made(kind: str, numbers: torch.Tensor) -> Weight:
    weight = HOST_MAKERS[kind](numbers)
    assert weight is not None, f"the numbers are no {kind}"
    return weight
