"""Where the question is written: several lines, history, completion, and pastes that never send themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.document._document import EditResult, Location
from textual.document._document_navigator import DocumentNavigator
from textual.document._wrapped_document import WrappedDocument
from textual.message import Message
from textual.widgets import TextArea
from textual.widgets.text_area import Edit

from dflash_tui.core.attachments.mentions import mention_of, pasted_paths
from dflash_tui.core.conversation.chat import Queued
from dflash_tui.core.conversation.folds import paste_mark
from dflash_tui.core.sessions.prompts import PromptHistory

from ..completion import Candidate, complete_file
from .visible_document import VisibleDocument

FOLD_LINES, FOLD_CHARACTERS = 6, 800
"""A paste of this size is shown as one marker."""
RECALLED_LINES, RECALLED_CHARACTERS = 40, 4000
"""A recalled question of this size is shown as one marker: it is too long to be read in the prompt."""
MAX_CHARACTERS = 256 * 1024
"""Characters of a prompt at most, pastes unfolded: far above any model's context here, far below what would freeze
an editor."""


PLACEHOLDER = "Ask something. Enter sends, Ctrl+J new line, F1 help."


class Prompt(TextArea):
    """A field for the question. Enter sends; Ctrl+J, Enter with a modifier and a backslash before Enter start a line.
    Large pastes fold into a marker and unfold when sent. Tab completes a slash command or a path behind an @, from a
    menu that arrows move in."""

    DEFAULT_CSS = """
    Prompt {
        height: auto;
        min-height: 1;
        max-height: 8;
        border: none;
        padding: 0;
        background: $background;
        &:focus { border: none; background: $background; }
        & .text-area--placeholder { color: $verdict-pending; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Send", show=False),
        Binding("ctrl+j", "newline", "New line", show=False),
        Binding("up", "older", "Older", show=False),
        Binding("down", "newer", "Newer", show=False),
        # The transcript has the pages; a prompt of eight lines needs none.
        Binding("pageup", "screen.act('page-up')", "Scroll up", show=False),
        Binding("pagedown", "screen.act('page-down')", "Scroll down", show=False),
        Binding("end", "line_end_or_follow", "End of line, or of the transcript", show=False),
        Binding("alt+z", "undo", "Undo", show=False),
        Binding("ctrl+d", "end_or_delete", "Quit when empty", show=False),
    ]

    @dataclass
    class Submitted(Message):
        """The user pressed Enter. ``text`` has its pastes unfolded."""

        text: str
        typed: str
        """The text with its pastes folded: what is in them was not written by the user, and names no files."""
        pasted: tuple[str, ...] = ()
        """The folded pastes, in the order of their markers."""

    @dataclass
    class PasteRefused(Message):
        """A paste was too large; the text before it is as it was."""

        characters: int

    @dataclass
    class Completing(Message):
        """What the text could become has changed; no ``candidates`` close the menu."""

        candidates: list[Candidate]
        chosen: int

    class EndOfInput(Message):
        """Ctrl+D on an empty prompt."""

    def __init__(self, *, id: str, questions: PromptHistory | None = None) -> None:
        # Before TextArea's constructor, which asks for a suggestion.
        self.completer: Callable[[str], list[Candidate]] = lambda text: []
        """Gives the candidates for completing a slash command."""
        self.queued: Callable[[], Queued | None] = lambda: None
        """Takes back the newest question that waits its turn: what ↑ on an empty prompt brings first."""
        self.offer: Callable[[str], str | None] = lambda text: None
        """An example to put in the place of this text: what → does at the end of an empty prompt, or of an example."""
        self._candidates: list[Candidate] = []
        self._chosen = 0
        self._moved = False
        """Whether the user chose in the menu, so that Enter takes the choice."""
        self._quiet = ""
        """For this text the menu stays closed: it was recalled, or the user closed the menu."""
        super().__init__(
            id=id,
            compact=True,
            highlight_cursor_line=False,
            placeholder=PLACEHOLDER,
        )
        self.questions = questions or PromptHistory(None)
        """Questions asked before, which the arrow keys bring back."""
        self._pastes: dict[str, str] = {}
        self._history_index = len(self.questions.entries)
        self._draft: tuple[str, tuple[str, ...]] = "", ()
        """What was being written when an earlier question was recalled, and the pastes in it."""

    def _set_document(self, text: str, language: str | None) -> None:
        """Override Textual's, whose document draws control characters as they are."""
        super()._set_document("", language)
        self.document = VisibleDocument(text)
        self.wrapped_document = WrappedDocument(self.document, tab_width=self.indent_width)
        self.navigator = DocumentNavigator(self.wrapped_document)
        self._rewrap_and_refresh_virtual_size()

    @property
    def unfolded(self) -> str:
        """The text with every marker replaced by what was pasted."""
        text = self.text
        for marker, pasted in self._pastes.items():
            text = text.replace(marker, pasted)
        return text

    def give_back(self, text: str, pasted: Sequence[str] = (), *, is_command: bool = False) -> None:
        """Put a refused text before what was typed since; a command stands there selected. ``pasted``: as in
        :meth:`fill`."""
        since = self.unfolded
        self.fill(text + since, (*pasted, *self._pasted))
        if is_command and not since:
            self.select_all()

    def fill(self, text: str, pasted: Sequence[str] = ()) -> None:
        """Put ``text`` in the place of what is there, and the cursor behind it. ``pasted``: texts in it, in their
        order, that were pasted, and are folded again."""
        self._pastes.clear()
        self._quiet = text if text.startswith("/") else text.rpartition("\n")[2]
        before, rest = "", text
        for paste in pasted:
            typed, separator, behind = rest.partition(paste.strip("\n"))
            if separator:
                before, rest = before + typed + self._fold(separator), behind
        self.text = before + rest if before else self._fold(text, RECALLED_LINES, RECALLED_CHARACTERS)
        self.move_cursor(self.document.end)
        self.focus()

    def put_aside(self) -> None:
        """Empty the prompt; what was typed can be recalled with ↑."""
        if self.text.strip():
            self._take()

    def start_command(self, head: str) -> None:
        """Begin a slash command, for the user to finish. What was typed can be recalled with ↑."""
        self.put_aside()
        self.text = head
        self.move_cursor(self.document.end)
        self.focus()

    @property
    def folds(self) -> bool:
        """Whether there is a folded paste in the text."""
        return any(marker in self.text for marker in self._pastes)

    def unfold(self) -> None:
        """Show pastes as what they are, from now on."""
        full = self.unfolded
        self._pastes.clear()
        self.text = full
        self.move_cursor(self.document.end)

    def _take(self) -> None:
        """Remember the text and start afresh."""
        self.questions.add(self.unfolded, self._pasted)
        self._history_index = len(self.questions.entries)
        self._pastes.clear()
        self.clear()

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        if len(text) + len(self.unfolded) > MAX_CHARACTERS:
            self.post_message(self.PasteRefused(len(text)))
            return
        if not self.text.startswith("/") and (paths := pasted_paths(text)):
            self.insert("".join(f"{mention_of(path)} " for path in paths))  # dropped on the terminal, as most send it
            return
        self.insert(self._fold(text))

    def edit(self, edit: Edit) -> EditResult:
        """Override TextArea's, through which every edit goes: a marker is edited as one character. One that lost a
        letter would be sent as it stands, without its paste."""
        start, end = sorted((edit.from_location, edit.to_location))
        for first, last in [each for row in {start[0], end[0]} for each in self._markers(row)]:
            if start == end and first < start < last:  # behind it instead
                start = end = last
            elif start < last and first < end:
                start, end = min(start, first), max(end, last)
        edit.from_location, edit.to_location = start, end
        return super().edit(edit)

    def _markers(self, row: int) -> Iterator[tuple[Location, Location]]:
        """Where each marker of line ``row`` begins and ends."""
        if self._pastes and row < self.document.line_count:
            line = self.document.get_line(row)
            for marker in self._pastes:
                column = line.find(marker)
                if column >= 0:
                    yield (row, column), (row, column + len(marker))

    def _fold(self, text: str, from_lines: int = FOLD_LINES, from_characters: int = FOLD_CHARACTERS) -> str:
        if text.removesuffix("\n").count("\n") + 1 < from_lines and len(text) < from_characters:
            return text
        marker = paste_mark(text, len(self._pastes) + 1)
        self._pastes[marker] = text
        return marker

    def action_submit(self) -> None:
        if self._candidates and (self._moved or self._is_half_a_name):
            only = len(self._candidates) == 1 and not self._moved
            self._take_candidate()
            if not only or self.text.endswith(" "):
                return
        if self.text.endswith("\\") and self.cursor_location == self.document.end:
            self.action_delete_left()
            self.action_newline()
            return
        # Emptied at once: keys that follow Enter quickly belong to the next question.
        message = self.Submitted(self.unfolded, self.text, self._pasted)
        if message.text.strip():
            self._take()
        self.post_message(message)

    @property
    def _pasted(self) -> tuple[str, ...]:
        """The folded pastes, in the order of their markers in the text."""
        places = {self.text.find(marker): pasted for marker, pasted in self._pastes.items()}
        return tuple(places[start] for start in sorted(places) if start >= 0)

    @property
    def _is_half_a_name(self) -> bool:
        """Whether a command's name is being typed, so that Enter can only mean what the menu offers."""
        return " " not in self.text and all(self.text != candidate.text.rstrip() for candidate in self._candidates)

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

    # History

    def action_older(self) -> None:
        if self._candidates:
            self._choose(-1)
        elif not self.text and (queued := self.queued()) is not None:
            self.fill(queued.text, queued.pasted)
        elif self.cursor_at_first_line and self._history_index > 0:
            self._recall(self._history_index - 1)
        else:
            self.action_cursor_up()

    def action_newer(self) -> None:
        if self._candidates:
            self._choose(1)
        elif self.cursor_at_last_line and self._history_index < len(self.questions.entries):
            self._recall(self._history_index + 1)
        else:
            self.action_cursor_down()

    def _recall(self, index: int) -> None:
        entries = self.questions.entries
        if self._history_index == len(entries):
            self._draft = self.unfolded, self._pasted
        self._history_index = index
        self.fill(*self._draft if index == len(entries) else self.questions.whole(index))

    # Completion

    def update_suggestion(self) -> None:
        """Called by TextArea after every change of the text."""
        self._moved = False
        command = self.document.line_count == 1 and self.document.get_line(0).startswith("/")
        text = self.text if command else self._line_before_cursor
        if text != self._quiet:
            self._quiet = ""
        if not text or text == self._quiet:
            self._show([], 0)
        else:
            self._show(self.completer(text) if command else complete_file(text), 0)

    @property
    def _line_before_cursor(self) -> str:
        row, column = self.cursor_location
        return self.get_text_range((row, 0), (row, column)) if row < self.document.line_count else ""

    @property
    def _completed(self) -> str:
        """The part of the text that a candidate would replace."""
        return self.text if self.text.startswith("/") else self._line_before_cursor

    def close_menu(self) -> bool:
        """Close the menu until the text changes; returns False when it was closed already."""
        if not self._candidates:
            return False
        self._quiet = self._completed
        self._show([], 0)
        return True

    def _choose(self, by: int) -> None:
        self._moved = True
        self._show(self._candidates, (self._chosen + by) % len(self._candidates))

    def _show(self, candidates: list[Candidate], chosen: int) -> None:
        if candidates or self._candidates:
            self.post_message(self.Completing(candidates, chosen))
        self._candidates, self._chosen = candidates, chosen
        self.suggestion = ""
        if candidates:
            ghost, typed = candidates[chosen].text, self._completed
            self.suggestion = ghost[len(typed) :] if ghost.startswith(typed) else ""

    def _take_candidate(self) -> None:
        text = self._candidates[self._chosen].text
        if self.text.startswith("/"):
            self.text = text
            self.move_cursor(self.document.end)
            return
        row, column = self.cursor_location
        self.replace(text, (row, 0), (row, column))

    async def _on_key(self, event: events.Key) -> None:
        """Keys that TextArea would take first, and those that are bound here: left to the application, which asks for
        bindings once a key came back to it, they would act behind text that was typed after them."""
        if event.key == "tab" and self._candidates:
            self._take_candidate()
        elif event.key == "right" and (example := self.offer(self.text)) is not None:
            self.fill(example)
        elif event.key == "escape" and self.close_menu():
            pass
        elif event.key == "enter":
            # TextArea would insert a newline before bindings are asked.
            self.action_submit()
        elif event.key.endswith("+enter"):
            self.action_newline()
        elif not await self._run_binding(event.key):
            return
        event.prevent_default()
        event.stop()

    async def _run_binding(self, key: str) -> bool:
        """Do what ``key`` is bound to in the prompt; False when that is nothing."""
        for binding in self._bindings.key_to_bindings.get(key, ()):
            if await self.app.run_action(binding.action, self):
                return True
        return False
