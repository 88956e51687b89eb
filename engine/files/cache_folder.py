"""The folder where the program keeps what it can make again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def home() -> Path:
    """The user's home folder; a folder of their own among temporary ones where none is known, as in a container whose
    user has no entry, or where they may not enter it."""
    try:
        folder = Path.home()
        os.stat(f"{folder}/.")
    except (RuntimeError, PermissionError):
        return Path(tempfile.gettempdir()) / f"dflash-chat-{os.getuid()}"
    except OSError:  # a file, or nothing yet: whoever needs a folder there says so
        pass
    return folder


def cache_folder(kind: str) -> Path:
    """The folder for one kind of things; it need not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or home() / ".cache") / "dflash-chat" / kind
