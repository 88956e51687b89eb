"""Triton's cache on disk: that it finds a kernel again whatever was launched before, and tells when it doesn't.

This reaches into Triton, and what it wants is speed alone: a Triton without these parts is left as it is.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

log = logging.getLogger(__name__)


def make_keys_independent_of_order() -> None:
    """A kernel's key is made of its source and of the constants that it and the functions it calls refer to.

    Triton 3.6 collects a called function's constants before it has looked into that function, unless a kernel that was
    launched before calls it too. So a kernel had several keys, and what one process compiled another compiled again.
    Here every function is looked into first.
    """
    with suppress(ImportError, AttributeError):
        from triton.runtime.jit import DependenciesFinder

        update = DependenciesFinder._update_hash

        def look_first(self: Any, function: Any) -> None:
            _ = function.cache_key
            update(self, function)

        DependenciesFinder._update_hash = look_first


def tell_what_is_compiled() -> None:
    """Logs each kernel that is not in the cache (DEBUG)."""

    def tell(*, src: Any, cache_hit: bool, times: Any, **_others: object) -> None:
        if not cache_hit:
            log.debug("compiled %s in %.2f s", src.name, times.total / 1e6)

    with suppress(ImportError, AttributeError):
        from triton import knobs

        knobs.compilation.listener = tell
