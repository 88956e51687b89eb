"""Makes Triton's disk cache find a kernel whatever was launched before, and sooner; says when it doesn't. Speed alone:
a Triton without the parts patched here is left as it is."""

from __future__ import annotations

import logging
from contextlib import suppress
from threading import Thread
from typing import Any

from ...threads import NativeThread

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

    def read() -> None:
        with suppress(Exception):  # the launch will read them itself, and say what is wrong
            from triton.runtime.cache import triton_key

            triton_key()

    thread = NativeThread(read, "triton")
    thread.start()
    return thread
