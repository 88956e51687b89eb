"""What a model may run on: memory and GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.machine import GROUP


@dataclass(frozen=True, slots=True)
class Machine:
    """What the child found on this machine."""

    memory: int
    """Bytes that models may take: the machine's free ones, and those of its GPUs."""
    gpus: tuple[str, ...] = ()
    version: str = ""


def free_memory() -> int:
    """Bytes that a program may take without pushing another out, on Linux; 0 elsewhere."""
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
    except OSError:
        return 0
    free = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)
    return min(free, _group_limit() or free)


def _group_limit() -> int:
    """Bytes that a container's limit leaves of the free memory; 0 without a limit."""
    try:
        limit, used = ((GROUP / name).read_text("utf-8").strip() for name in ("memory.max", "memory.current"))
        return 0 if limit == "max" else max(int(limit) - int(used), 0)
    except (OSError, ValueError):
        return 0
