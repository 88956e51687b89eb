"""Finds GPUs without torch: the one in this machine, by the driver's own tool, and those that people plan for, by
name."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

NVIDIA_SMI = ("nvidia-smi", "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits")
NVIDIA_SMI_SECONDS = 3.0
GIBIBYTE = 2**30
LARGEST = 1000
"""Numbers from here on aren't gibibytes, but part of a name."""
TAKEN = 600_000_000
"""Bytes of a card that its driver and a context take before anything is loaded."""


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    memory: int
    """Bytes of memory in all."""
    free: int
    """Bytes of memory that are free."""


@dataclass(frozen=True, slots=True)
class KnownCard:
    """A card as its maker's data sheet describes it."""

    name: str
    gibibytes: int
    """Gibibytes of memory."""
    bandwidth: float
    """Bandwidth of the memory in bytes per second."""

    @property
    def free(self) -> int:
        """Bytes of memory that are left to a program."""
        return self.gibibytes * GIBIBYTE - TAKEN


CARDS = (
    KnownCard("RTX 3060", 12, 360e9),
    KnownCard("RTX 4060 Ti", 16, 288e9),
    KnownCard("RTX 5060 Ti", 16, 448e9),
    KnownCard("RTX 4080", 16, 716.8e9),
    KnownCard("RTX 5080", 16, 960e9),
    KnownCard("RTX 3090", 24, 936.2e9),
    KnownCard("RTX 4090", 24, 1008e9),
    KnownCard("RTX 5090", 32, 1792e9),
    KnownCard("A100-40", 40, 1555e9),
    KnownCard("RTX A6000", 48, 768e9),
    KnownCard("RTX 6000 Ada", 48, 960e9),
    KnownCard("L40S", 48, 864e9),
    KnownCard("A100-80", 80, 2039e9),
    KnownCard("H100", 80, 3352e9),
    KnownCard("RTX PRO 6000", 96, 1792e9),
    KnownCard("H200", 141, 4800e9),
)
"""Known cards by memory. Sources are NVIDIA's pages and data sheets of each card: GeForce RTX 30/40/50 specifications,
the white papers of GA102, AD102 and GB202 (bus width times rate: 384 bit at 19.5 and 21 Gb/s, 512 bit at 28), data
sheets of RTX A6000, RTX 6000 Ada, RTX PRO 6000, L40S, A100 (40 GB PCIe, 80 GB SXM), H100 SXM and H200 SXM."""


def first_gpu() -> Gpu | None:
    """The first GPU that the driver lists; None without a driver, or where it doesn't answer."""
    try:
        result = subprocess.run(NVIDIA_SMI, capture_output=True, text=True, timeout=NVIDIA_SMI_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    name, *sizes = result.stdout.partition("\n")[0].rsplit(", ", 2)
    if result.returncode != 0 or len(sizes) != 2 or not all(size.isdecimal() for size in sizes):
        return None
    total, free = (int(size) * 2**20 for size in sizes)
    return Gpu(name, total, free)


def planned_gpu(what: str) -> Gpu | None:
    """A card to plan for: one of ``CARDS`` by a part of its name, or gibibytes of memory; None for neither."""
    words, text = what.lower().split(), what.strip()
    if text.replace(".", "", 1).isdecimal() and float(text) < LARGEST:
        memory = int(float(text) * GIBIBYTE)
        return Gpu(f"a card with {text} GB", memory, max(0, memory - TAKEN))
    named = next((card for card in CARDS if words and all(word in card.name.lower() for word in words)), None)
    return None if named is None else Gpu(named.name, named.gibibytes * GIBIBYTE, named.free)
