"""The fixtures of ``tests/app``."""

from __future__ import annotations

from tests.app.conftest import (
    _not_every_frame_is_drawn,
    _notices_stay,
    _shared,
    _style_sheets_are_parsed_once,
    chat,
    launch,
)

__all__ = ["_not_every_frame_is_drawn", "_notices_stay", "_shared", "_style_sheets_are_parsed_once", "chat", "launch"]
