"""Sets the GPU up, and links torch's libraries, while something else is being imported. Standard library only."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

from ..threads import NativeThread

DRIVER = "libcuda.so.1"
DRIVERS_FILES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""Files that exist where Linux, or Linux within Windows, has an NVIDIA driver."""

TORCHS_LIBRARIES = {
    "libtorch_global_deps.so": os.RTLD_NOW | os.RTLD_GLOBAL,
    "libtorch_cpu.so": os.RTLD_NOW,
    "libtorch_cuda.so": os.RTLD_NOW,
}
"""What ``import torch`` links, in its order and with its flags, up to what calls Python."""


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


def link_torch() -> None:
    """Begins to link torch's libraries, a fifth of its import, on a thread and without the interpreter: a function that
    ctypes calls leaves it to others, ``ctypes.CDLL`` and ``import`` don't. Not before a first frame: who imports a
    library meanwhile waits for the linker."""
    if has_driver():
        NativeThread(_link_torch, "linking").start()


def _link_torch() -> None:
    spec = None if "torch" in sys.modules else find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return
    link = ctypes.CDLL(None).dlopen
    link.argtypes, link.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    for name, flags in TORCHS_LIBRARIES.items():
        if not link(os.fsencode(Path(spec.submodule_search_locations[0]) / "lib" / name), flags):
            return
