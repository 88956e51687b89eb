"""Running code blocks from the chat: asked for, watched beside the screen's thread, and kept under the answer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dflash_tui.core.attachments.attachment import counted
from dflash_tui.core.conversation.blocks import chosen_program
from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.files.running import SECONDS, RunError, Running, RunResult, start
from dflash_tui.core.text.fences import CodeBlock

from .screens.asking import AskScreen, Way

if TYPE_CHECKING:
    from .screens.chat import ChatScreen


class Runs:
    """At most one program at a time."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._running: Running | None = None
        self.words = ""
        """What runs, for the status line; empty for nothing."""

    def ask(self, words: str) -> None:
        """Run a block of Python of the newest answer that has any, once the user has agreed. Raises ``SlashError``."""
        if self._running is not None:
            raise SlashError("A program runs already. Esc stops it.")
        if self._screen.app.is_web:
            raise SlashError("In a browser nothing is run: it would run on the machine that serves this page.")
        turn, block = chosen_program(self._screen.chat.tree.path, words)
        lines = block.content.splitlines()
        size = counted(len(lines), "line")
        question = self._screen.said(
            f"Run block {block.number}, {size} of Python? It runs as you, in an empty folder, for at most "
            f"{SECONDS:.0f} s; it can read your files. Esc stops it."
        )
        ways = [Way("n", "no", "no"), Way("y", "run it", "yes")]

        def chosen(way: str | None) -> None:
            if way == "yes":
                self._start(turn, block)

        self._screen.app.push_screen(AskScreen("run this?", question, ways, "\n".join(lines)), chosen)

    def _start(self, turn: int, block: CodeBlock) -> None:
        try:
            self._running = start(block)
        except RunError as error:
            self._screen.notify(f"{error} {error.hint}", title="Not run", severity="error", timeout=6, markup=False)
            return
        self.words = self._screen.said(f"block {block.number} runs; Esc stops it")
        self._screen.drawing.draw_status()
        self._screen.run_worker(partial(self._wait, turn, self._running), name="run", thread=True, exit_on_error=False)

    def _wait(self, turn: int, running: Running) -> None:
        """On a thread of its own."""
        result = running.wait()
        if self._screen.app.is_running:
            self._screen.app.call_from_thread(self._finish, turn, result)

    def _finish(self, turn: int, result: RunResult) -> None:
        self._running, self.words = None, ""
        screen = self._screen
        screen.drawing.draw_status()
        if turn not in screen.chat.tree:
            return  # another conversation is on the screen now
        screen.chat.add_run(turn, result)
        screen.talk.show_run(turn)

    def stop(self) -> bool:
        """End the program; False when none runs."""
        if self._running is None:
            return False
        self._running.stop()
        return True
