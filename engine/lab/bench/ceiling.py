"""Measures what the memory of this machine can do: the ceiling to which every other figure is compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from ...measured.timing import time_calls

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


def measure_ceiling(device: torch.device) -> Ceiling:
    """Copies and sums large buffers; takes a tenth of a second on a GPU."""
    size = GPU_BYTES if device.type == "cuda" else CPU_BYTES
    source = torch.ones(size // 4, dtype=torch.float32, device=device)
    destination = torch.empty_like(source)
    copy = 2 * size / _seconds(lambda: destination.copy_(source), device)
    read = size / _seconds(source.sum, device)
    return Ceiling(copy, read)


def _seconds(work: Callable[[], Tensor], device: torch.device) -> float:
    """Median seconds of one call, after one that warms up."""
    work()
    return median(time_calls(work, REPEATS, device)) / 1e3
