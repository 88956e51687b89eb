"""Finds GPUs without torch: the one in this machine, by the driver's own tool, and those that people plan for, by
name."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

GIBIBYTE = 2**30
LARGEST = 1000
"""Numbers from here on aren't gibibytes, but part of a name."""
TAKEN = 600_000_000
"""Bytes of a card that its driver and a context take before anything is loaded."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU of this machine, or one to plan for."""

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

    @property
    def free(self) -> int:
        """Bytes of memory that are left to a program."""
        return self.gibibytes * GIBIBYTE - TAKEN


CARDS = (
    KnownCard("RTX 3060", 12),
    KnownCard("RTX 4060 Ti", 16),
    KnownCard("RTX 5060 Ti", 16),
    KnownCard("RTX 4080", 16),
    KnownCard("RTX 5080", 16),
    KnownCard("RTX 3090", 24),
    KnownCard("RTX 4090", 24),
    KnownCard("RTX 5090", 32),
    KnownCard("A100-40", 40),
    KnownCard("RTX A6000", 48),
    KnownCard("RTX 6000 Ada", 48),
    KnownCard("L40S", 48),
    KnownCard("A100-80", 80),
    KnownCard("H100", 80),
    KnownCard("RTX PRO 6000", 96),
    KnownCard("H200", 141),
)
"""Known cards by memory, from NVIDIA's pages and data sheets: GeForce RTX 30/40/50, RTX A6000, RTX 6000 Ada,
RTX PRO 6000, L40S, A100 (40 GB PCIe, 80 GB SXM), H100 SXM and H200 SXM."""


def driver_says(fields: str, seconds: float) -> list[str]:
    """A line for each GPU with these ``fields`` of ``nvidia-smi``, separated by commas; empty without a driver, or
    where it doesn't answer in time."""
    command = ("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits")
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.SubprocessError):
        return []
    return result.stdout.splitlines() if result.returncode == 0 else []


def first_gpu() -> Gpu | None:
    """The first GPU that the driver lists; None without a driver, or where it doesn't answer."""
    name, *sizes = next(iter(driver_says("name,memory.total,memory.free", 3.0)), "").rsplit(", ", 2)
    if len(sizes) != 2 or not all(size.isdecimal() for size in sizes):
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
