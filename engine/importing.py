"""Imports that take seconds. Standard library only."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """No search for cycles in this block: what an import makes, hundreds of thousands of objects, stays for good, and
    looking through it again and again takes a tenth of the time. For the whole process, so for short blocks."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
