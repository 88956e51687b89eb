"""Small questions before something is done: open a page, run a block, make room in the context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from dflash_tui.core.desk.face import AskOption
from dflash_tui.core.text.harmless import sanitise

from .once import DismissOnceScreen

KEYS = "↑ ↓ move · Enter takes it · Esc: none of it"


class AskScreen(ModalScreen[str | None], DismissOnceScreen[str | None]):
    """Asks a question with a few ways to answer, the first under the cursor. Gives the chosen way's value, or None."""

    DEFAULT_CSS = """
    AskScreen { align: center middle; }
    AskScreen > Vertical {
        width: 76;
        max-width: 100%;
        height: auto;
        max-height: 90%;
        padding: 0 1;
        background: $surface;
        border: round $primary;
        border-title-color: $primary;
    }
    AskScreen .detail { color: $verdict-pending; height: auto; max-height: 40vh; margin: 0 0 0 2; }
    AskScreen OptionList { height: auto; max-height: 8; border: none; padding: 0; background: $surface; margin-top: 1; }
    AskScreen OptionList:focus { border: none; }
    AskScreen .keys { color: $verdict-pending; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "No", show=False, priority=True),
        Binding("pageup", "scroll_detail(-1)", "Up", show=False, priority=True),
        Binding("pagedown", "scroll_detail(1)", "Down", show=False, priority=True),
    ]

    def __init__(
        self, title: str, question: str, ways: Sequence[AskOption], detail: str = "", *, at_once: bool = True
    ) -> None:
        """``at_once``: a way's key takes it. Where something is being typed, a letter may be meant for the prompt:
        there the key only moves to it."""
        super().__init__()
        self._at_once = at_once
        self._title = title
        self._question = question
        self._ways = ways
        self._detail = detail

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(sanitise(self._question), markup=False)
            if self._detail:
                with VerticalScroll(classes="detail", can_focus=False):
                    yield Static(sanitise(self._detail), markup=False)
            yield OptionList(*(Option(f"{way.key}  {way.words}") for way in self._ways), compact=True, markup=False)
            yield Static(KEYS, classes="keys")

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_keys)

    def _show_keys(self) -> None:
        if self.is_gone:
            return
        hidden = any(detail.max_scroll_y for detail in self.query(VerticalScroll))
        self.query_one(".keys", Static).update(f"PgDn more · {KEYS}" if hidden else KEYS)

    def action_scroll_detail(self, pages: int) -> None:
        for detail in self.query(VerticalScroll):
            detail.scroll_relative(y=pages * max(detail.size.height - 1, 1), animate=False)

    def on_mount(self) -> None:
        self.query_one(Vertical).border_title = self._title
        options = self.query_one(OptionList)
        options.highlighted = 0
        options.focus()

    @on(OptionList.OptionSelected)
    def take(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(self._ways[message.option_index].value)

    def on_key(self, event: events.Key) -> None:
        index = next((index for index, way in enumerate(self._ways) if way.key == event.character), None)
        if index is None:
            return
        event.stop()
        if self._at_once:
            self.dismiss(self._ways[index].value)
        else:
            self.query_one(OptionList).highlighted = index

    def action_leave(self) -> None:
        self.dismiss(None)
