"""What tests find around them, whatever the developer's machine has: no settings of theirs, a home of their own, a
terminal and a language that are always the same. Programs that tests start inherit it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable

DROPPED = ("DFLASH_CHAT_", "HF_", "XDG_", "TEXTUAL", "LC_", "TRITON_CACHE", "TRITON_HOME")
"""Whose names begin so."""
ALSO = {
    *("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS", "LINES", "TERM_PROGRAM", "TMUX", "STY", "DISPLAY"),
    *("WAYLAND_DISPLAY", "SSH_TTY", "SSH_CONNECTION", "PAGER", "EDITOR", "VISUAL", "BROWSER", "LANGUAGE"),
}


def settle() -> None:
    """Call it before anything reads the environment."""
    for name in list(os.environ):
        if name.startswith(DROPPED) or name in ALSO:
            del os.environ[name]
    home = tempfile.mkdtemp(prefix="home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ |= {"HOME": home, "LANG": "C.UTF-8", "TERM": "xterm-256color"}


def threads(name: str) -> set[threading.Thread]:
    """Those of this name that run now: what a test has begun is what did not run before."""
    return {thread for thread in threading.enumerate() if thread.name == name}


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Waits for what another thread or program will do."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.005)
