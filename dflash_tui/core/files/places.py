"""The folders and files that the program writes by itself, such as conversations and its log, and its own themes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from engine.files.cache_folder import home

STATE_VARIABLE = "DFLASH_CHAT_STATE"


def settle_home() -> None:
    """Give a user without a home folder, or with one that they may not enter, as in containers that run as somebody
    else, one among temporary files: libraries would fail, or make folders called ~."""
    if (folder := home()) != Path(os.path.expanduser("~")):
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
        os.environ["HOME"] = str(folder)


def state_directory() -> Path:
    """What the program keeps for the user: ``$DFLASH_CHAT_STATE``, else the platform's place for such things."""
    if root := os.environ.get(STATE_VARIABLE):
        return Path(os.path.expanduser(root))
    from platformdirs import user_state_dir  # recordings are made where the engine's own needs are all there is

    return Path(os.path.expanduser(user_state_dir("dflash-chat", appauthor=False)))


def sessions_directory() -> Path:
    """The folder in which conversations are kept."""
    return state_directory() / "sessions"


def read_kept(name: str) -> dict[str, Any]:
    """The JSON object in a file of the state directory; an empty one where there is none, or nothing usable."""
    try:
        content = json.loads((state_directory() / name).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def keep(name: str, content: Mapping[str, Any]) -> None:
    """Write a JSON object to a file of the state directory, whole or not at all. What can't be written is forgotten."""
    path = state_directory() / name
    temporary = path.with_name(f".{name}.{uuid4().hex}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.write_text(json.dumps(content), "utf-8")
        temporary.replace(path)


def bundled_themes_dir() -> Path:
    """The folder of themes that come with the program: beside the package in a checkout, inside it once installed."""
    package = Path(__file__).parents[2]
    installed = package / "themes"
    return installed if installed.is_dir() else package.parent / "themes"


def log_file() -> Path:
    """The file that takes warnings and tracebacks. It exists once there was something to write."""
    return state_directory() / "dflash-chat.log"
