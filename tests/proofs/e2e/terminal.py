"""A program in a real terminal: tmux draws what a person would see and sends what a person would type.

Every terminal has a tmux server of its own, so that tests share neither windows nor settings, and nobody else's tmux
is touched. Where the bytes themselves matter, ``support/terminal.py`` has a bare pseudo-terminal.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

POLL_S = 0.05
PATIENCE_S = 90.0
"""How long a condition may take before the test gives up: much, for a machine may be slow and busy. It costs only a
test that fails."""

# Runs the program as a shell would, and stays afterwards: what the program left of the terminal can be looked at.
# The exit code is written last: once it is there, everything else is. A test runner's COLUMNS and LINES would hide the
# window's size from the program.
_SHELL = """
unset COLUMNS LINES
folder=$1; shift
stty -g >"$folder/modes-before"
sh -c 'echo $$ >"$0"; exec "$@"' "$folder/pid" "$@"
code=$?
stty -g >"$folder/modes-after"
echo $code >"$folder/exit-code"
exec cat
"""
_STATE_FORMAT = "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"
_FLAGS_FORMAT = f"{_STATE_FORMAT} #{{bracket_paste_flag}} #{{insert_flag}} #{{origin_flag}} #{{pane_title}}"


@dataclass(frozen=True, slots=True)
class TerminalState:
    """What a program may leave behind and should not."""

    alternate_screen: bool
    cursor_visible: bool
    mouse_reports: bool
    modes_restored: bool
    """Whether line editing, echo and the like (``stty -g``) are as they were before the program."""


RESTORED = TerminalState(alternate_screen=False, cursor_visible=True, mouse_reports=False, modes_restored=True)


class Terminal:
    """One program in one window. Rows and columns count from 0."""

    def __init__(self, server: str, folder: Path) -> None:
        self._server = server
        self._folder = folder

    @classmethod
    @contextmanager
    def running(
        cls, command: Sequence[str | Path], folder: Path, size: tuple[int, int] = (120, 36)
    ) -> Iterator[Terminal]:
        """Start ``command`` in a window of ``size`` (columns, rows); ``folder`` is for this terminal's own files.

        The program gets this process's environment and directory, and ends with the block.
        """
        folder.mkdir(parents=True, exist_ok=True)
        terminal = cls(f"dflash-e2e-{uuid4().hex}", folder)
        width, height = map(str, size)
        shell = ["sh", "-c", _SHELL, "sh", str(folder), *map(str, command)]
        # Without a configuration file: a developer's own tmux may rebind keys.
        options = ["-f", "/dev/null", "start-server", ";", "set-option", "-g", "status", "off", ";"]
        terminal._tmux(*options, "new-session", "-d", "-x", width, "-y", height, *shell)
        try:
            yield terminal
        finally:
            terminal.vanish()

    # What is on the screen

    @property
    def screen(self) -> str:
        """The visible rows, joined by newlines, without trailing blanks."""
        return self._tmux("capture-pane", "-p")

    def wait_for(self, wanted: str | Callable[[str], object], seconds: float = PATIENCE_S) -> str:
        """The screen, as soon as a pattern (a regular expression) is on it or a condition of it holds.

        Raises ``AssertionError`` with the last screen when that does not happen in time.
        """
        holds = re.compile(wanted).search if isinstance(wanted, str) else wanted
        deadline = time.monotonic() + seconds
        while not holds(screen := self.screen):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds} s: {wanted}\n{screen}")
            time.sleep(POLL_S)
        return screen

    def find(self, pattern: str) -> tuple[int, int]:
        """Column and row of the first match of a regular expression."""
        for row, line in enumerate(self.screen.splitlines()):
            if found := re.search(pattern, line):
                return found.start(), row
        raise AssertionError(f"not on the screen: {pattern}\n{self.screen}")

    # Keys, mouse, paste

    def press(self, *keys: str) -> None:
        """Press keys by their tmux names: ``Enter``, ``Escape``, ``C-s``, ``M-Up``."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type characters one after the other."""
        self._tmux("send-keys", "-l", text)

    def paste(self, text: str) -> None:
        """Paste at once, in the brackets of a terminal's own paste and with its line ends."""
        self._tmux("load-buffer", "-", stdin=text)
        self._tmux("paste-buffer", "-p", "-d")

    def drag(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Press the left button at one cell (column, row), move, and let go at another."""
        self._mouse(0, start, "M")
        self._mouse(32, end, "M")
        self._mouse(0, end, "m")

    def _mouse(self, button: int, cell: tuple[int, int], action: str) -> None:
        column, row = cell
        self.type(f"\x1b[<{button};{column + 1};{row + 1}{action}")  # SGR mouse reports count from 1

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    # The program

    def vanish(self) -> None:
        """The terminal goes away under the program, as when an SSH connection breaks; for good."""
        subprocess.run(["tmux", "-L", self._server, "kill-server"], capture_output=True, timeout=60)

    @property
    def pid(self) -> int:
        return int(self._wait_for_file("pid"))

    def wait_for_exit(self, seconds: float = PATIENCE_S) -> int:
        """The program's exit code; a shell's 128 + number when a signal killed it."""
        return int(self._wait_for_file("exit-code", seconds))

    @property
    def flags(self) -> str:
        """What a program may have set meanwhile: the title, the modes, and whether there is a paste buffer."""
        return self._tmux("display-message", "-p", _FLAGS_FORMAT) + self._tmux("list-buffers")

    @property
    def state(self) -> TerminalState:
        """What the terminal is like after the program has ended."""
        flags = [flag == "1" for flag in self._tmux("display-message", "-p", _STATE_FORMAT).split()]
        before, after = ((self._folder / f"modes-{when}").read_text() for when in ("before", "after"))
        return TerminalState(*flags, modes_restored=before == after)

    @property
    def takes_mouse(self) -> bool:
        """The running program has asked for clicks and the wheel."""
        return self._tmux("display-message", "-p", "#{mouse_any_flag}").strip() == "1"

    def _wait_for_file(self, name: str, seconds: float = PATIENCE_S) -> str:
        path = self._folder / name
        deadline = time.monotonic() + seconds
        while not (path.exists() and (text := path.read_text()).endswith("\n")):
            if time.monotonic() > deadline:
                raise AssertionError(f"no {name} within {seconds} s\n{self.screen}")
            time.sleep(POLL_S)
        return text

    def _tmux(self, *arguments: str, stdin: str = "") -> str:
        command = ["tmux", "-L", self._server, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True, timeout=60).stdout
