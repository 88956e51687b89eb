"""Compiles kernels ahead of their launches, without the GPU. Triton compiles at first launch, one kernel after the
other, and caches machine code by source and argument types. So here launches are made with tensors without memory, and
processes compile what they need into the cache meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import nullcontext, suppress
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any

from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as nvidia
from triton.backends.nvidia.driver import CudaLauncher, CudaUtils
from triton.compiler import code_generator
from triton.runtime.driver import driver

from .card import Card, stand_in
from .disk_cache import prepared

WARP_SIZE = 32
NICENESS = 10
"""How far a process that compiles gives way to others."""


class AbsentGPU:
    """Stands in for Triton's driver: kernels are compiled for it, and none runs."""

    def __init__(self, capability: int):
        self._target = GPUTarget("cuda", capability, WARP_SIZE)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return self._target


class Noted:
    """Stands in for machine code that was noted before: Triton launches it, and writes nothing down again."""

    function = packed_metadata = None

    def launch_metadata(self, *_launch: object) -> None:
        """Nothing is told of the launch."""

    def run(self, *_launch: object) -> None:
        """Launches nothing."""


def compile_for(card: Card) -> None:
    """Makes this process compile for a card, and launch nothing, from now on."""
    driver.set_active(AbsentGPU(card.capability))
    stand_in(card)


def compile_all(run: Callable[[], None], processes: int) -> list[str]:
    """Compiles what ``run`` launches into Triton's cache, while it launches; returns the launches, one for each
    piece of machine code, for ``disk_cache.loading_beside``. It forks, so there may be no threads and no GPU before."""
    begun: dict[str, Future[None]] = {}
    with ProcessPoolExecutor(processes, mp_context=get_context("fork"), initializer=_give_way) as pool:
        loader = pool.submit(_build_loader)

        def begin(key: object, fn: Any, compile: dict[str, Any], **_others: object) -> bool:
            launch = compile["specialization_data"]  # as Triton writes it down (JSON)
            if launch not in begun:
                begun[launch] = pool.submit(_compile, launch)
            with suppress(AttributeError, LookupError):  # speed alone: all layers launch alike
                fn.jit_function.device_caches[0][0][key] = Noted()
            return True  # says that somebody else compiles; the launch is then left out

        knobs.runtime.jit_cache_hook = begin
        try:
            run()
        finally:
            knobs.runtime.jit_cache_hook = None
        for built in (loader, *begun.values()):
            built.result()
    return [*begun]


def _give_way() -> None:
    """Lets this process run where others leave a core idle: those who read weights need few, and not for long. What it
    compiles is kept without the texts on the way, 50 MB that every start would read again."""
    knobs.runtime.jit_cache_hook = None
    knobs.compilation.store_binary_only = True
    # Triton 3.6 sets warnings aside anew for each node of a kernel's source, a fifth of what it takes to read it.
    silent = dict.fromkeys(("simplefilter", "warn", "warn_explicit"), lambda *_what, **_how: None)
    code_generator.warnings = SimpleNamespace(catch_warnings=nullcontext, **silent)
    os.nice(NICENESS)


def _build_loader() -> None:
    """Builds the library that hands machine code to a GPU, which each machine needs once."""
    CudaUtils()


def _compile(launch: str) -> None:
    kernel = prepared(launch)
    if hasattr(nvidia, "make_launcher"):  # Triton 3.7 has one launcher for all, which comes with the loader
        CudaLauncher(kernel.src, kernel.metadata)
