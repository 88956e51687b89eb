"""Asks the operating system what the machine has. Standard library only; the front ends' own differences between
systems are in ``dflash_tui/core/platforms.py``."""

from __future__ import annotations

import math
import os
import platform
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUP = Path("/sys/fs/cgroup")
"""Where Linux tells what a container leaves its programs."""
OWN_GROUP = Path("/proc/self/cgroup")
"""Which of its groups this process is in."""


def memory_bytes() -> int:
    """Bytes of memory that this process may have: the machine's, or fewer in a container; 0 where nobody tells."""
    limits = [each for each in (_memory_of_the_machine(), *_memory_of_groups()) if each]
    return min(limits, default=0)


def _memory_of_groups() -> Iterator[int]:
    """Yields the limits of the groups that this process is in, from its own outwards, and of the old kind of group."""
    with suppress(OSError):
        lines = OWN_GROUP.read_text("utf-8", "replace").splitlines()
        own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
        for group in (GROUP / own, *(GROUP / own).parents):
            yield _number_in(group / "memory.max")
            if group == GROUP:
                break
    yield _number_in(GROUP / "memory" / "memory.limit_in_bytes")


def _number_in(path: Path) -> int:
    """The whole number in a file; 0 where there is none, or a word such as "max"."""
    try:
        return int(path.read_text("utf-8"))
    except (OSError, ValueError):
        return 0


def _memory_of_the_machine() -> int:
    with suppress(OSError, ValueError):  # a name that this system doesn't know
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0


def cores() -> int:
    """How many cores this process may keep busy: fewer than the machine's where it is bound to some (Linux), or in a
    container that gets a part of their time; at least one."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(bound, math.ceil(_share_of_a_container() or bound)))


def _share_of_a_container() -> float:
    """How many cores' time a container gets; 0 where nothing limits it."""
    try:
        quota, period = (GROUP / "cpu.max").read_text("utf-8").split()
        return 0.0 if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return 0.0


def cpu_name() -> str:
    """The processor's name, as the operating system has it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def end(process: subprocess.Popen[str]) -> None:
    """Kills a process that is a session of its own at once, with those it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
