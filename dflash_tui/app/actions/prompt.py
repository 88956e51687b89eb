"""Actions on the prompt: fill it with an earlier question, or edit it in a program of the user's."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from textual.app import SuspendNotSupported

from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.desk.command import Command

from ..chat.screen import ChatScreen
from ..screens.picker import SearchScreen


def search_questions(screen: ChatScreen, _: Argument) -> None:
    prompt = screen.prompt

    def take(question: str | None) -> None:
        if question is not None:
            prompt.put_aside()
            prompt.fill(question, prompt.questions.pasted.get(question, ()))

    screen.app.push_screen(SearchScreen(prompt.questions), take)


def edit_outside(screen: ChatScreen, _: Argument) -> None:
    """Edit the prompt's text in ``$VISUAL`` or ``$EDITOR``; an answer goes on being written meanwhile."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise SlashError("Set EDITOR to the editor you like, such as EDITOR=nano.")
    with tempfile.TemporaryDirectory(prefix="dflash-chat-") as folder:
        file = Path(folder) / "question.md"
        file.write_text(screen.prompt.unfolded, encoding="utf-8")
        try:
            with screen.app.suspend():
                done = subprocess.run([*shlex.split(editor), str(file)])
            text = file.read_text(encoding="utf-8", errors="replace")
        except SuspendNotSupported:
            raise SlashError("An editor needs a terminal of its own.") from None
        except (OSError, ValueError) as error:
            raise SlashError(f"{editor} could not be used: {error}") from None
    if done.returncode == 0:
        screen.prompt.fill(text.rstrip("\n"))


COMMANDS = {
    "unfold": (
        Command(
            "search",
            "Search my questions",
            "search the questions asked before",
            search_questions,
            "ctrl+r",
            priority=True,
        ),
    ),
    "sessions": (
        Command(
            "editor",
            "Write in an editor",
            "write the question in $EDITOR",
            edit_outside,
            "alt+e",
            "editor",
            priority=True,
        ),
    ),
}
