"""What there is to run a model on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.machine import GROUP


@dataclass(frozen=True, slots=True)
class Machine:
    """What the child found."""

    memory: int
    """Bytes that models may take: free ones of the machine, and of its GPUs."""
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
    """What a container leaves of it; 0 without one."""
    try:
        limit, used = ((GROUP / name).read_text("utf-8").strip() for name in ("memory.max", "memory.current"))
        return 0 if limit == "max" else max(int(limit) - int(used), 0)
    except (OSError, ValueError):
        return 0
