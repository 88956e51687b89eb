"""Checks that every kernel asks for its line's split of a multiprocessor's memory: with another one it starts late."""

from __future__ import annotations

import ctypes

import torch
from triton import knobs

from engine.kernels.toolchain.memory_split import PREFERRED_CARVEOUT, SPLIT
from measure.gpu.report import Report


class LoadedKernels:
    """Notes every kernel that Triton hands to the driver from now on."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        knobs.runtime.kernel_load_end_hook.add(self._note)

    def _note(self, _module: object, function: int, name: str, *_others: object) -> None:
        self._names[function] = name

    def check_splits(self, report: Report) -> None:
        if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (9, 0):
            return
        driver, percent = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        others = set()
        for function, name in self._names.items():
            error = driver.cuFuncGetAttribute(ctypes.byref(percent), PREFERRED_CARVEOUT, ctypes.c_void_p(function))
            if error or percent.value != SPLIT.wanted(function):
                others.add(f"{name} {percent.value} %")
        told = ", ".join(sorted(others)) or "none"
        value = f"{len(self._names)} kernels ask for what they should, of a line {SPLIT.percent} %; others: {told}"
        report.line("shared memory", value, bool(self._names) and not others)
