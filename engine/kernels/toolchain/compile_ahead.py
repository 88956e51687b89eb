"""Compiles kernels ahead of their launches, without the GPU. Triton compiles at first launch, one kernel after the
other, and caches machine code by source and argument types. So here launches are made with tensors without memory and
noted, and several processes compile them into the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as nvidia
from triton.backends.nvidia.driver import CudaLauncher, CudaUtils
from triton.runtime.cache import triton_key
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from .card import Card, stand_in

WARP_SIZE = 32


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


def get_ready() -> None:
    """Hashes Triton's own files for its cache keys, which every process that compiles would otherwise do first."""
    triton_key()


def compile_for(card: Card) -> None:
    """Makes this process compile for a card, and launch nothing, from now on."""
    driver.set_active(AbsentGPU(card.capability))
    stand_in(card)


def noted_launches(run: Callable[[], None]) -> list[str]:
    """The launches that ``run`` makes, one for each piece of machine code, as Triton writes them down (JSON). Nothing
    is compiled."""
    noted: dict[str, None] = {}

    def note(compile: dict[str, Any], **_others: object) -> bool:
        noted.setdefault(compile["specialization_data"])
        return True  # pretends that somebody else compiles; the launch is then left out

    knobs.runtime.jit_cache_hook = note
    try:
        run()
    finally:
        knobs.runtime.jit_cache_hook = None
    return list(noted)


def compile_all(noted: Sequence[str], processes: int) -> None:
    """Compiles noted launches into Triton's cache. It forks, so there may be no threads and no GPU before."""
    # Kernels of long sources take longest: they begin first, so that none is waited for alone.
    in_order = sorted(noted, key=lambda launch: len(_kernel(launch).src), reverse=True)
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        for built in [pool.submit(_build_loader), *(pool.submit(_compile, launch) for launch in in_order)]:
            built.result()


def compile_one(noted: str) -> None:
    """Compiles one noted launch into Triton's cache, in this process, which can note such a launch again."""
    _compile(noted)
    _kernel(noted).device_caches.clear()


def _build_loader() -> None:
    """Builds the library that hands machine code to a GPU, which each machine needs once."""
    CudaUtils()


def _kernel(launch: str) -> JITFunction:
    module, _, name = json.loads(launch)["name"].rpartition(".")
    return getattr(import_module(module), name)


def _compile(launch: str) -> None:
    kernel = _kernel(launch).preload(launch)
    if hasattr(nvidia, "make_launcher"):  # Triton 3.7 has one launcher for all, which comes with the loader
        CudaLauncher(kernel.src, kernel.metadata)
