"""The terminal: is there one, and can a screen be drawn in it?"""

from __future__ import annotations

import os
import sys

BARE = ("dumb", "unknown")


def bare_terminal() -> bool:
    """Whether this is a terminal that can only print lines, on which no screen can be drawn."""
    bare = os.environ.get("TERM", "") in BARE
    return bare and sys.stdin.isatty() and sys.stdout.isatty()


def has_screen() -> bool:
    """Whether there is a terminal to draw in, which one that can only print lines is not."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in BARE
