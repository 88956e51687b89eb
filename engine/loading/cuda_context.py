"""Sets the GPU up while torch is being imported. Standard library only."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from threading import Thread

from ..threads import NativeThread

DRIVER = "libcuda.so.1"
DRIVERS_FILES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""Files that exist where Linux, or Linux within Windows, has an NVIDIA driver."""


def has_driver() -> bool:
    """Whether this machine may have a GPU that we can use, by its files: no driver is asked."""
    return any(path.exists() for path in DRIVERS_FILES)


def wake_gpu() -> Thread | None:
    """Sets up the first GPU's primary context on the returned thread; None without a driver."""
    if not has_driver():
        return None
    os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")  # what torch sets, too late for the driver
    thread = NativeThread(_retain_context, "gpu")
    thread.start()
    return thread


def _retain_context() -> None:
    """Creates the context. Whatever goes wrong here, torch will meet again and put into words."""
    try:
        cuda = ctypes.CDLL(DRIVER)
    except OSError:
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0:
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
