"""Imports that take seconds."""

from __future__ import annotations

import gc
from contextlib import suppress

from engine.gc_pause import gc_paused


def test_collecting_goes_on_behind_an_import_that_fails_and_stays_off_where_it_was() -> None:
    with suppress(ImportError), gc_paused():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
