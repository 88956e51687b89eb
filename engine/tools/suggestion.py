"""Which published pair this machine's GPU could run. Asks the driver's own tool, so that torch need not be imported."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from ..hub.pairs import KNOWN_PAIRS
from ..models.family import KnownPair

NVIDIA_SMI = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
NVIDIA_SMI_SECONDS = 3.0
BYTES_PER_PARAMETER = 2
"""bf16."""
ROOM = 6_000_000_000
"""Bytes for caches, activations and the libraries' workspaces, beside the weights."""
PREFERRED = ("google/gemma-4-26B-A4B-it", "google/gemma-4-12B-it")
"""The first that fits. A mixture of experts reads a fraction of its weights per token: the larger one is the faster."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    pair: KnownPair
    gpu: str
    """The GPU's name."""
    memory: int
    """Its memory in bytes."""

    @property
    def weights(self) -> int:
        """Bytes to fetch."""
        return self.pair.num_parameters * BYTES_PER_PARAMETER


def suggest_pair() -> Suggestion | None:
    """The pair to offer on the first GPU; None without one, or when none of the pairs fits on it."""
    gpu = _first_gpu()
    if gpu is None:
        return None
    name, memory = gpu
    pairs = {pair.target: pair for pair in KNOWN_PAIRS}
    fitting = (Suggestion(pairs[target], name, memory) for target in PREFERRED)
    return next((suggestion for suggestion in fitting if suggestion.weights + ROOM <= memory), None)


def _first_gpu() -> tuple[str, int] | None:
    """Name, and bytes of memory."""
    try:
        result = subprocess.run(NVIDIA_SMI, capture_output=True, text=True, timeout=NVIDIA_SMI_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    name, comma, mebibytes = result.stdout.partition("\n")[0].rpartition(", ")
    return (name, int(mebibytes) * 2**20) if result.returncode == 0 and comma and mebibytes.isdecimal() else None
