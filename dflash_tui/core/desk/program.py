"""Running a code block of an answer: asked for, watched, and kept under the answer."""

from __future__ import annotations

from ..conversation.blocks import chosen_program
from ..conversation.chat import Chat
from ..conversation.slash import SlashError
from ..conversation.tree import Tree
from ..conversation.turn import Turn
from ..files.running import SECONDS, Running, RunResult, start
from ..text.counted import counted
from .face import AskOption, Face, Question


class Program:
    """Runs programs from an answer's code blocks, one at a time."""

    def __init__(self, chat: Chat, face: Face) -> None:
        self._chat, self._face = chat, face
        self._running: Running | None = None
        self.block = 0
        """The number of the block that runs; 0 for none."""

    def ask(self, words: str) -> None:
        """Run a block of Python of the newest answer that has any, once the user has agreed. Raises ``SlashError``."""
        if self._running is not None:
            raise SlashError("A program runs already. Esc stops it.")
        if self._face.remote:
            raise SlashError("In a browser nothing is run: it would run on the machine that serves this page.")
        tree = self._chat.tree
        turn, block = chosen_program(tree.path, words)
        lines = block.content.splitlines()
        question = (
            f"Run block {block.number}, {counted(len(lines), 'line')} of Python? It runs as you, in an empty folder, "
            f"for at most {SECONDS:.0f} s; it can read your files."
        )

        def chosen(way: str | None) -> None:
            if way != "yes":
                return
            running = start(block)
            self._running, self.block = running, block.number
            self._face.changed("program")
            self._face.wait(running.wait, lambda result: self._finish(tree, turn, result), running.stop)

        ways = (AskOption("n", "no", "no"), AskOption("y", "yes", "run it"))
        self._face.ask(Question("run this?", question, ways, "It was not run.", "\n".join(lines)), chosen)

    def _finish(self, tree: Tree[Turn], turn: int, result: RunResult) -> None:
        self._running, self.block = None, 0
        self._face.changed("program")
        if tree is self._chat.tree:  # else another conversation is on by now
            self._chat.add_run(turn, result)
            self._face.changed("ran", turn)

    def stop(self) -> bool:
        """End the program; False when none runs."""
        if self._running is None:
            return False
        self._running.stop()
        return True
