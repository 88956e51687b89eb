"""Measures what the memory of this machine can do: the ceiling to which every other figure is compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

from ..kernels.weights.kinds import bytes_of
from ..models.target import TargetModel
from .store import store, stored
from .timing import time_calls

BESIDE_BYTES = 256 << 20
"""Bytes of each buffer where models lie beside them."""
GPU_BYTES, CPU_BYTES = 4 << 30, 256 << 20
"""Bytes of each buffer: far more than a cache holds."""
REPEATS = 10


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The memory's rates in bytes per second. ``copy`` counts both what is read and what is written."""

    copy: float
    read: float

    @property
    def best(self) -> float:
        """The higher of the two rates: no pass can beat it."""
        return max(self.copy, self.read)


class WeightBytes(NamedTuple):
    """Bytes of a target's weights."""

    body: int
    """All without experts, output head and embedding."""
    expert: int
    """One expert of every layer; 0 without a mixture."""
    head: int
    """The output head. Of a separate embedding only one row is read for each token."""


def weight_bytes(target: TargetModel) -> WeightBytes:
    head, moe = target.head, target.config.moe
    untied = 0 if head is target.embed_tokens.weight else head.nbytes
    experts = sum(tensor.nbytes for name, tensor in target.named_parameters() if ".experts." in name)
    body = bytes_of(target) - head.nbytes - untied - experts
    return WeightBytes(body, experts // moe.num_experts if moe else 0, head.nbytes)


def one_row_floor_ms(target: TargetModel, device: torch.device) -> float | None:
    """Milliseconds that the memory takes to read the weights of a pass over one row: no token without speculation comes
    sooner. None on a CPU, whose caches hold a small model, and where the memory's pace can't be measured."""
    if device.type != "cuda" or (pace := memory_pace(device)) is None:
        return None
    return token_bytes(target) / pace * 1e3


def token_bytes(target: TargetModel) -> int:
    """Bytes of the weights that a pass over one row reads."""
    weights, moe = weight_bytes(target), target.config.moe
    return weights.body + weights.head + weights.expert * (moe.top_k if moe else 0)


def memory_pace(device: torch.device) -> float | None:
    """The memory's best pace on a GPU in bytes per second, measured once on a machine; None where there is no room."""
    identity = (torch.cuda.get_device_name(device), str(BESIDE_BYTES))
    ceiling = stored("ceiling", identity, lambda data: Ceiling(float(data["copy"]), float(data["read"])))
    if ceiling is None:
        try:
            ceiling = measure_ceiling(device, BESIDE_BYTES)
        except torch.OutOfMemoryError:
            return None
        finally:
            torch.cuda.empty_cache()
        store("ceiling", identity, asdict(ceiling))
    return ceiling.best if ceiling.best > 0 else None


def measure_ceiling(device: torch.device, size: int = 0) -> Ceiling:
    """Copies and sums large buffers of ``size`` bytes; takes a tenth of a second on a GPU."""
    size = size or (GPU_BYTES if device.type == "cuda" else CPU_BYTES)
    source = torch.ones(size // 4, dtype=torch.float32, device=device)
    destination = torch.empty_like(source)
    copy = 2 * size / _seconds(lambda: destination.copy_(source), device)
    read = size / _seconds(source.sum, device)
    return Ceiling(copy, read)


def _seconds(work: Callable[[], Tensor], device: torch.device) -> float:
    """Median seconds of one call, after one that warms up."""
    work()
    return median(time_calls(work, REPEATS, device)) / 1e3
