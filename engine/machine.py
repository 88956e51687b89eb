"""What the machine has, where operating systems tell it in different words. Standard library only; the front ends' own
differences are in ``dflash_tui/core/platforms.py``."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

GROUP = Path("/sys/fs/cgroup")
"""What a container leaves its programs, on Linux."""


def memory_bytes() -> int:
    """All that the machine has; 0 where nobody tells."""
    if hasattr(os, "sysconf"):
        with suppress(OSError, ValueError):  # a name that this system doesn't know
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    kernel = getattr(getattr(ctypes, "windll", None), "kernel32", None)
    if kernel is None:
        return 0
    return _windows_memory(kernel)


def _windows_memory(kernel: object) -> int:
    """Windows has no ``sysconf``: it fills a structure of 64 bytes, which says in the first four how long it is, and in
    eight from the eighth on how much memory there is."""
    status = (ctypes.c_uint64 * 8)()
    ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
    return int(status[1]) if kernel.GlobalMemoryStatusEx(status) else 0  # type: ignore[attr-defined]


def cores() -> int:
    """Those that this process may keep busy: fewer than the machine's where it is bound to some (Linux), or in a
    container that gets a part of their time; at least one."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(bound, math.ceil(_share_of_a_container() or bound)))


def _share_of_a_container() -> float:
    """Cores' worth of time; 0 where nothing limits it."""
    try:
        quota, period = (GROUP / "cpu.max").read_text("utf-8").split()
        return 0.0 if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return 0.0


def cpu_name() -> str:
    """As the operating system calls it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def apart() -> dict[str, Any]:
    """For ``Popen``: so that :func:`end` also ends what the process has started. Windows has no such groups."""
    return {"start_new_session": hasattr(os, "killpg")}


def end(process: subprocess.Popen[str]) -> None:
    """At once, with its own processes where they are a group (:func:`apart`)."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
