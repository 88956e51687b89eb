"""Lines in and lines out: nothing is drawn, no cursor moves.

A line is a question; a backslash at its end goes on in the next line, and a line that begins with three quotation marks
opens a question of many lines, which three more close. Where stdin is no terminal every line of it is one, too."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress

from dflash_tui.core.text.harmless import sanitise

from ..problems import Problem
from ..terminal.saying import say

PROMPT = "You: "
BLOCK = '"""'


class Terminal:
    """stdin and stdout as lines of a conversation."""

    def __init__(self) -> None:
        self.asks_back = sys.stdin.isatty()
        """Whether somebody sits at stdin, who can be asked."""

    def remember(self, questions: Iterable[str]) -> None:
        """Let arrow keys bring earlier questions back, where the terminal has a reader of lines."""
        if self.asks_back:
            with suppress(ImportError):
                import readline

                for text in questions:
                    if "\n" not in text:
                        readline.add_history(text)

    def say(self, text: str) -> None:
        """Print lines, without what a terminal would act on."""
        say(sanitise(text))

    def question(self) -> str:
        """Read one question. Ctrl+C at the prompt only says how to leave. Raises ``EOFError`` at the end."""
        lines: list[str] = []
        in_block = False
        while True:
            try:
                line = self._input("" if lines or in_block else PROMPT)
            except KeyboardInterrupt:
                self.say("\nCtrl+D leaves.")
                lines.clear()
                in_block = False
                continue
            except EOFError:
                if not lines:
                    raise
                return "\n".join(lines)
            if in_block or line.startswith(BLOCK):
                inside = line if in_block else line.removeprefix(BLOCK)
                if inside.rstrip().endswith(BLOCK) and (in_block or inside.strip()):
                    return "\n".join([*lines, inside.rstrip().removesuffix(BLOCK)]).strip("\n")
                lines.append(inside)
                in_block = True
            elif line.endswith("\\"):
                lines.append(line[:-1])
            else:
                return "\n".join([*lines, line])

    def _input(self, prompt: str) -> str:
        """Read a line. Where nobody types, it is printed too, so that what is printed reads as a conversation."""
        if self.asks_back:
            return input(prompt)
        try:
            line = input()
        except UnicodeDecodeError as error:
            raise Problem(
                f"What was piped in is not UTF-8 text (byte {error.start}).",
                "Convert it first, for example with iconv.",
            ) from error
        if line.strip():
            self.say(f"{prompt}{line}")
        return line

    def line(self, question: str) -> str:
        """Ask for a line; returns what the user answers, empty for nothing."""
        try:
            return input(sanitise(question)).strip()
        except (EOFError, KeyboardInterrupt):
            self.say("")
            return ""
