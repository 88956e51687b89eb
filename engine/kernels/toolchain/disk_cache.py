"""Makes Triton's disk cache find a kernel whatever was launched before, and sooner; says when it doesn't. Speed alone:
a Triton without the parts patched here is left as it is."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from ...threads import NativeThread

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)


def make_keys_independent_of_order() -> None:
    """Triton 3.6 puts a called function's constants into a kernel's key before it has looked into that function, unless
    an earlier launch did: one kernel, several keys. Here every function is looked into first."""
    with suppress(ImportError, AttributeError):
        from triton.runtime.jit import DependenciesFinder

        update = DependenciesFinder._update_hash

        def look_first(self: Any, function: Any) -> None:
            _ = function.cache_key
            update(self, function)

        DependenciesFinder._update_hash = look_first


def tell_what_is_compiled() -> None:
    """Logs each kernel that isn't found in the cache (level DEBUG)."""

    def tell(*, src: Any, cache_hit: bool, times: Any, **_others: object) -> None:
        if not cache_hit:
            log.debug("compiled %s in %.2f s", src.name, times.total / 1e6)

    with suppress(ImportError, AttributeError):
        from triton import knobs

        knobs.compilation.listener = tell


def read_compiler_beside() -> Thread:
    """Begins on a thread what the first launch would wait for: the hash of Triton's own files, 400 MB of them, which is
    part of every kernel's key. Hashing leaves the interpreter to others."""
    thread = NativeThread(_read_compiler, "triton")
    thread.start()
    return thread


_reading_compiler = Lock()


def _read_compiler() -> None:
    with suppress(Exception), _reading_compiler:  # the launch will read them itself, and say what is wrong
        from triton.runtime.cache import triton_key

        triton_key()  # kept by Triton


def prepared(launch: str) -> Any:
    """The machine code for a launch, which is in the words (JSON) in which Triton's hooks are told of it."""
    module, _, name = json.loads(launch)["name"].rpartition(".")
    return getattr(import_module(module), name).preload(launch)


@contextmanager
def loading_beside(launches: Sequence[str], device: torch.device) -> Iterator[None]:
    """Brings what an earlier start compiled for ``launches`` to the GPU, on a thread, while the block runs. A kernel's
    first launch would have to: it looks through sources for the key, and reads files. What fails, or isn't done at the
    block's end, is left to it."""
    over = Event()
    thread = NativeThread(partial(_load, launches, device, over), "kernels")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _load(launches: Sequence[str], device: torch.device, over: Event) -> None:
    import torch  # imported here: whoever starts to compile doesn't wait for it

    _read_compiler()
    with suppress(Exception), torch.cuda.device(device):
        for launch in launches:
            if over.is_set():
                return
            with suppress(Exception):
                _bring(prepared(launch))


def _bring(kernel: Any) -> None:
    try:
        _ = kernel.run  # asking for it loads it
    finally:
        if kernel.module is None:
            kernel._run = None  # with a launcher Triton takes it for loaded, and its first launch wouldn't try again
