"""The folders and files that the program writes by itself: conversations, its log, and what else it keeps."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_state_dir

STATE_VARIABLE = "DFLASH_CHAT_STATE"


def state_directory() -> Path:
    """What the program keeps for the user: ``$DFLASH_CHAT_STATE``, else the platform's place for such things."""
    root = os.environ.get(STATE_VARIABLE) or user_state_dir("dflash-chat", appauthor=False)
    return Path(root).expanduser()


def sessions_directory() -> Path:
    """Where conversations are kept."""
    return state_directory() / "sessions"


def log_file() -> Path:
    """Where warnings and tracebacks go. It is there once there was something to write."""
    return state_directory() / "dflash-chat.log"
