"""Where the question is written: several lines, history, and pastes that never send themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

FOLD_LINES, FOLD_CHARACTERS = 6, 800
"""A paste of this size is shown as one marker."""
MAX_CHARACTERS = 256 * 1024
"""Of one prompt, pastes unfolded. Far above any model's context here, far below what would freeze an editor."""


class Prompt(TextArea):
    """Enter sends, Ctrl+J and Shift+Enter start a line. Large pastes fold into a marker and unfold when sent."""

    DEFAULT_CSS = """
    Prompt {
        height: auto;
        min-height: 1;
        max-height: 8;
        border: none;
        padding: 0;
        background: $background;
        &:focus { border: none; background: $background; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Send", show=False),
        Binding("ctrl+j,shift+enter", "newline", "New line", show=False),
        Binding("up", "older", "Older", show=False),
        Binding("down", "newer", "Newer", show=False),
        # The transcript has the pages; a prompt of eight lines needs none.
        Binding("pageup", "screen.act('page-up')", "Scroll up", show=False),
        Binding("pagedown", "screen.act('page-down')", "Scroll down", show=False),
        Binding("end", "line_end_or_follow", "End of line, or of the transcript", show=False),
        Binding("ctrl+d", "end_or_delete", "Quit when empty", show=False),
    ]

    @dataclass
    class Submitted(Message):
        """The user pressed Enter. ``text`` has its pastes unfolded."""

        text: str

    @dataclass
    class PasteRefused(Message):
        """A paste was too large; the text before it is as it was."""

        characters: int

    class EndOfInput(Message):
        """Ctrl+D on an empty prompt."""

    def __init__(self, *, id: str) -> None:
        super().__init__(
            id=id,
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask something. Enter sends, Ctrl+J starts a line, F1 helps.",
        )
        self._pastes: dict[str, str] = {}
        self._history: list[str] = []
        self._place = 0
        self._draft = ""

    @property
    def unfolded(self) -> str:
        """The text with every marker replaced by what was pasted."""
        text = self.text
        for marker, pasted in self._pastes.items():
            text = text.replace(marker, pasted)
        return text

    def give_back(self, text: str) -> None:
        """A submitted text was refused: put it before whatever was typed since."""
        typed = self.unfolded
        self._pastes.clear()
        self.text = self._fold(text + typed)
        self.move_cursor(self.document.end)

    def start_command(self, head: str) -> None:
        """Begin a slash command, for the user to finish. What was typed can be recalled with ↑."""
        if self.text:
            self._take()
        self.text = head
        self.move_cursor(self.document.end)
        self.focus()

    def _take(self) -> None:
        """Remember the text and start afresh."""
        full = self.unfolded
        if not self._history or self._history[-1] != full:
            self._history.append(full)
        self._place = len(self._history)
        self._pastes.clear()
        self.clear()

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        if len(text) + len(self.unfolded) > MAX_CHARACTERS:
            self.post_message(self.PasteRefused(len(text)))
            return
        self.insert(self._fold(text))

    def _fold(self, text: str) -> str:
        lines = text.count("\n") + 1
        if lines < FOLD_LINES and len(text) < FOLD_CHARACTERS:
            return text
        size = f"{lines} lines" if lines > 1 else f"{len(text)} characters"
        marker = f"[Pasted #{len(self._pastes) + 1} +{size}]"
        self._pastes[marker] = text
        return marker

    def action_submit(self) -> None:
        # Emptied at once: keys that follow Enter quickly belong to the next question.
        message = self.Submitted(self.unfolded)
        if message.text.strip():
            self._take()
        self.post_message(message)

    def action_newline(self) -> None:
        self.insert("\n")

    def action_end_or_delete(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.EndOfInput())

    async def action_line_end_or_follow(self) -> None:
        if self.text:
            self.action_cursor_line_end()
        else:
            await self.run_action("screen.act('follow')")

    def action_older(self) -> None:
        if self.cursor_at_first_line and self._place > 0:
            self._recall(self._place - 1)
        else:
            self.action_cursor_up()

    def action_newer(self) -> None:
        if self.cursor_at_last_line and self._place < len(self._history):
            self._recall(self._place + 1)
        else:
            self.action_cursor_down()

    def _recall(self, place: int) -> None:
        if self._place == len(self._history):
            self._draft = self.unfolded
        self._place = place
        text = self._draft if place == len(self._history) else self._history[place]
        self._pastes.clear()
        self.text = self._fold(text)
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        # TextArea would insert a newline for Enter before bindings are asked.
        if event.key in ("enter", "shift+enter"):
            event.prevent_default()
            event.stop()
            (self.action_submit if event.key == "enter" else self.action_newline)()
