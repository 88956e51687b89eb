"""Speeds up imports that take seconds. Standard library only."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Suspends the search for reference cycles in a block: an import makes hundreds of thousands of objects that stay
    for good, and searching through them again and again takes a fifth of its time. It holds for the whole process, so
    it is for short blocks."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                # All objects count as old from now on; young ones would be searched at once.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
