"""Imports that take seconds. Standard library only."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """No search for cycles in this block: what an import makes, hundreds of thousands of objects, stays for good, and
    looking through it again and again takes a fifth of the time. For the whole process, so for short blocks."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                # All objects are old from now on. As young ones they would be looked through at once.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
