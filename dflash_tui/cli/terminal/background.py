"""The terminal: is there one, and is it dark or light? Asked (OSC 11) while the screen is being imported, followed by a
question that all terminals answer (DA1), so silence is noticed at once."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dflash_tui.core.platforms import in_foreground, quiet

QUESTION = b"\x1b]11;?\x1b\\\x1b[c"
PATIENCE, REMOTE_PATIENCE = 0.1, 1.0
"""Seconds to wait for a late reply, here or over a slow line; the screen's keyboard takes a later one away."""
_COLOUR = re.compile(
    rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})[^\x07\x1b]*(?:\x07|\x1b\\)?"
)
_KIND = re.compile(rb"\x1b\[\?[0-9;]*c")
_MUTE = ("", "dumb", "linux", "unknown")

BARE = ("dumb", "unknown")

AUTO, LIGHT_THEME = "auto", "dflash-light"


class Background:
    """The background of a terminal that was asked for it. Its reply is read when it is wanted."""

    def __init__(self, terminal: int | None = None) -> None:
        self._terminal = terminal
        """The terminal's file number; None where no terminal can be asked."""
        self._heard: bytes | None = None

    @property
    def dark(self) -> bool | None:
        """Whether it is dark; None when that isn't known."""
        return is_dark(self._reply)

    @property
    def typed(self) -> bytes:
        """What stood among the terminal's words: keys pressed while it was being asked."""
        return _KIND.sub(b"", _COLOUR.sub(b"", self._reply))

    @property
    def _reply(self) -> bytes:
        if self._heard is None:
            self._heard = b"" if self._terminal is None else _reply(self._terminal)
        return self._heard


@contextmanager
def terminal_background() -> Iterator[Background]:
    """Asks the terminal at once, and reads its reply when it is wanted, at the end at the latest."""
    if not _can_ask():
        yield Background()
        return
    stdin, stdout = sys.stdin.fileno(), sys.stdout.fileno()
    background = Background(stdin)
    with quiet(stdin):
        try:
            os.write(stdout, QUESTION)
            yield background
        finally:
            _ = background.dark  # a reply that nobody reads would be typed into the prompt


def _can_ask() -> bool:
    """Whether we are in the foreground of a real terminal that may answer."""
    if os.environ.get("TERM", "") in _MUTE:
        return False
    try:
        return sys.stdin.isatty() and sys.stdout.isatty() and in_foreground(sys.stdin.fileno())
    except (OSError, ValueError):  # a stream that is closed
        return False


def _reply(terminal: int) -> bytes:
    """What the terminal said by now, or says within ``PATIENCE``."""
    patience = REMOTE_PATIENCE if os.environ.get("SSH_CONNECTION") else PATIENCE
    reply, deadline = b"", time.monotonic() + patience
    while not _KIND.search(reply):
        ready, _, _ = select.select([terminal], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            break
        piece = os.read(terminal, 1024)
        if not piece:
            break
        reply += piece
    return reply


def is_dark(reply: bytes) -> bool | None:
    """Whether the colour in a terminal's reply is dark; None when it holds none."""
    match = _COLOUR.search(reply)
    if match is None:
        return None
    red, green, blue = (int(channel, 16) / ((1 << 4 * len(channel)) - 1) for channel in match.groups())
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.5


@dataclass(frozen=True, slots=True)
class Suited:
    """What a screen that opens takes from its terminal."""

    wanted: str | None
    """The theme's name, ``auto`` included; None where none was asked for."""
    background: Background

    @property
    def theme(self) -> str | None:
        """The theme that was asked for; else the light one on a light terminal, else None."""
        return self.wanted or (LIGHT_THEME if self.background.dark is False else None)

    @property
    def typed(self) -> bytes:
        """The bytes of keys that were pressed while the reply was awaited, which nobody else will see."""
        return self.background.typed


@contextmanager
def suited_theme(theme: str | None) -> Iterator[Suited]:
    """Looks which theme suits the terminal while the block runs; ``auto`` asks for none."""
    if theme not in (None, AUTO):
        yield Suited(theme, Background())
        return
    with terminal_background() as background:
        yield Suited(None, background)


def in_browser() -> bool:
    """Whether textual-serve has started the program: stdin and stdout are pipes then, and behind them is a browser."""
    return os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


def bare_terminal() -> bool:
    """Whether this is a terminal that can only print lines, on which no screen can be drawn."""
    bare = os.environ.get("TERM", "") in BARE
    return bare and not in_browser() and sys.stdin.isatty() and sys.stdout.isatty()


def has_screen() -> bool:
    """Whether there is a terminal or a browser to draw in, which one that can only print lines is not."""
    return in_browser() or (sys.stdout.isatty() and os.environ.get("TERM", "") not in BARE)
