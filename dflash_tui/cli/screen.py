"""Whether there is something to draw the chat on."""

from __future__ import annotations

import os
import sys


def in_browser() -> bool:
    """textual-serve has started the program: stdin and stdout are pipes to it, and behind it there is a browser."""
    return os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


def has_screen() -> bool:
    """There is a terminal, or a browser."""
    return in_browser() or sys.stdout.isatty()
