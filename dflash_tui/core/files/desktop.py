"""This machine's own tools: they open saved files, and copy what a terminal may not: it refuses long texts, may not
hear through tmux, and never says whether it took one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..failures import Failure
from ..platforms import opener, own_screen

LONGEST_SEQUENCE = 74_000
"""Bytes of text that terminals accept in one OSC 52 sequence: 100,000 of base64."""
SECONDS = 2.0
"""Seconds that a tool of the desktop may take."""
_TOOLS = (
    ("pbcopy", "", ("pbcopy",)),
    ("wl-copy", "WAYLAND_DISPLAY", ("wl-copy",)),
    ("xclip", "DISPLAY", ("xclip", "-selection", "clipboard")),
    ("tmux", "TMUX", ("tmux", "load-buffer", "-w", "-")),
)
"""A program, the variable without which it can do nothing, and how to call it."""


def local_tool(environment: Mapping[str, str] = os.environ) -> tuple[str, ...] | None:
    """The command line of the first tool that can copy here; None when there is none."""
    for program, variable, command in _TOOLS:
        if (not variable or environment.get(variable)) and shutil.which(program, path=environment.get("PATH")):
            return command
    return None


def copy_locally(text: str) -> str | None:
    """Give ``text`` to a tool of this machine within ``SECONDS``; its name, or None."""
    command = local_tool()
    if command is None:
        return None
    try:
        subprocess.run(
            command,
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return command[0]


SHOWN = {".csv", ".htm", ".html", ".json", ".md", ".svg", ".toml", ".txt", ".xml", ".yaml"}
"""Kinds of file that desktops show. A desktop may run others, such as ``.py`` and ``.js``, instead of showing them."""


class OpeningError(Failure):
    """A file that was not opened."""


def no_screen(environment: Mapping[str, str] = os.environ) -> str | None:
    """Why nothing can be shown on a desktop here, in words; None where it can."""
    if environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"):
        return "This terminal is at the other end of an SSH connection: the page would open on the machine over there."
    if own_screen() or environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return None
    return "There is no screen here: neither DISPLAY nor WAYLAND_DISPLAY is set."


def why_not_opened(path: Path) -> str | None:
    """Why this file can't be shown here, in words; None where nothing is known against it."""
    if path.suffix.lower() not in SHOWN:
        return f"A {path.suffix or 'nameless'} file isn't opened: a desktop might run it."
    return no_screen()


def open_file(path: Path) -> None:
    """Ask the desktop to show ``path``. Raises :class:`OpeningError` where that can't be, or is refused within
    ``SECONDS``."""
    where = f"It is here: {path.resolve()}"
    if reason := why_not_opened(path):
        raise OpeningError(reason, where)
    program = opener()
    if shutil.which(program) is None:
        raise OpeningError(f"There is no {program} here to open it with.", where)
    try:
        asked = subprocess.Popen(
            [program, path.resolve()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        refused = asked.wait(SECONDS)
    except subprocess.TimeoutExpired:
        return  # some stay as long as what they opened
    except OSError as error:
        raise OpeningError(f"{program} could not be started: {error.strerror or error}.", where) from error
    if refused:
        raise OpeningError(f"{program} knows nothing to open it with (exit code {refused}).", where)
