"""The fixtures of ``tests/app``."""

from __future__ import annotations

from dflash_tui.core.platforms import TERMINALS
from tests.app.conftest import (
    _not_every_frame_is_drawn,
    _notices_stay,
    _shared,
    _style_sheets_are_parsed_once,
    chat,
    launch,
)

__all__ = ["_not_every_frame_is_drawn", "_notices_stay", "_shared", "_style_sheets_are_parsed_once", "chat", "launch"]

collect_ignore = [] if TERMINALS else ["test_keyboard.py"]
"""What reads a terminal's file can't be imported where there is none."""
