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
    names = ("memory.max", "memory.high", "memory.limit_in_bytes")  # beyond the second it goes on, at a crawl
    limits = [_number_in(group / name) for group in _groups("memory") for name in names]
    return min(filter(None, (_memory_of_the_machine(), *limits)), default=0)


def _groups(controller: str) -> Iterator[Path]:
    """Yields the folders of the groups that this process is in, from its own outwards: a limit of any holds for all
    inside. Those of the old kind lie apart for each controller. A container may be told its path on the host, of which
    it sees the end alone."""
    own = {(GROUP, ""), (GROUP / controller, "")}
    with suppress(OSError):
        for line in OWN_GROUP.read_text("utf-8", "replace").splitlines():
            controllers, _, path = line.partition(":")[2].partition(":")
            if not controllers or controller in controllers.split(","):
                own.add((GROUP / controller if controllers else GROUP, path.strip("/")))
    for top, path in own:
        yield from (group for group in (top / path, *(top / path).parents) if group.is_relative_to(top))


def _number_in(path: Path) -> int:
    """The whole number in a file; 0 where there is none, or a word such as "max", or -1 for the same."""
    try:
        return max(0, int(path.read_text("utf-8")))
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
    return max(1, min(bound, *(math.ceil(share or bound) for share in map(_share, _groups("cpu")))))


def _share(group: Path) -> float:
    """How many cores' time a group gets; 0 where nothing limits it."""
    with suppress(OSError, ValueError):
        quota, period = map(int, (group / "cpu.max").read_text("utf-8").split())
        return max(0, quota) / max(1, period)
    return _number_in(group / "cpu.cfs_quota_us") / max(1, _number_in(group / "cpu.cfs_period_us"))


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
