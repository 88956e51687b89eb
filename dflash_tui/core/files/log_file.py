"""Where warnings and tracebacks go."""

from __future__ import annotations

from pathlib import Path

from ..sessions.sessions import state_directory


def log_file() -> Path:
    """The file, which is there once there was something to write."""
    return state_directory() / "dflash-chat.log"
