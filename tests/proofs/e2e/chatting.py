"""The installed chat in a real terminal: how to open it, ask, and read what it kept."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.sessions.sessions import load_session

from .terminal import Terminal

PROGRAM = Path(sys.executable).with_name("dflash-chat")
DRONE_PAGE = "create a single-file HTML animation of a drone swarm"
"""Its answer is the longest the bundled pair gives: there is time to do things while it streams."""
UNTIMED = ("--block-size", "16")
"""For tests that look at something else than the choice of how much to verify: its costs are timed at every start."""
READY = "● ready"
_NOTICE = re.compile(r"▌ (\S.*)$", re.MULTILINE)
"""A row of a notice, behind its left edge."""


class ChatWindow:
    """The chat as a user sees it, and the record it writes meanwhile."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal

    def ask(self, question: str) -> None:
        self.terminal.type(question)
        self.terminal.press("Enter")

    def ask_and_wait(self, question: str) -> Turn:
        """Ask, and wait for the whole answer to be on the screen."""
        number = len(turns()) + 1
        self.ask(question)
        return self.wait_for_turn(number)

    def wait_for_text(self, characters: int) -> None:
        """Wait until the running answer has that many characters."""
        self.terminal.wait_for(lambda _: (said := turns()) and len(said[-1].answer) >= characters)

    def wait_for_turn(self, number: int) -> Turn:
        """Wait for a turn to end and for the screen to say so."""
        self.terminal.wait_for(lambda _: len(said := turns()) >= number and said[-1].reason is not None)
        self.terminal.wait_for(READY)
        return turns()[-1]

    def save(self, path: Path) -> None:
        """Press Ctrl+S and wait to be told that the code block is in ``path``."""
        self.terminal.press("C-s")
        self.wait_for_notice(f"Saved {path}")

    def wait_for_notice(self, words: str) -> None:
        """Wait for a notice that says these words; where its box breaks the line does not matter."""
        self.terminal.wait_for(lambda screen: squeezed(words) in squeezed("".join(_NOTICE.findall(screen))))

    def quit(self) -> int:
        """Leave with Ctrl+Q; the exit code."""
        self.terminal.press("C-q")
        return self.terminal.wait_for_exit()


@contextmanager
def open_chat(
    folder: Path, *arguments: str | Path, size: tuple[int, int] = (120, 36), ready: bool = True
) -> Iterator[ChatWindow]:
    """Open the chat with flags, saving code under ``folder / "out"``; the block ends it."""
    command = [PROGRAM, "--out", folder / "out", *arguments]
    with Terminal.running(command, folder / "terminal", size) as terminal:
        if ready:
            terminal.wait_for(READY)
        yield ChatWindow(terminal)


def turns() -> tuple[Turn, ...]:
    """What the one conversation of this test has on disk; nothing before the first question."""
    sessions = [*(Path(os.environ["DFLASH_CHAT_STATE"]) / "sessions").glob("*.jsonl")]
    try:
        return load_session(sessions[0]).turns if sessions else ()
    except ValueError:  # its first line is being written
        return ()


def squeezed(text: str) -> str:
    """Without blanks and line breaks: what is left does not depend on where lines are wrapped."""
    return "".join(text.split())
