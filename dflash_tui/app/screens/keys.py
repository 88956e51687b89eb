"""The keys of a screen that has few of its own, and what its colours and its words mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from dflash_tui.core.figures.labels import COLOURS, Label

from ..keymap import key_name
from ..widgets.rounds.round_strip import STYLES
from .once import DismissOnceScreen

KEY_WIDTH, WIDTH, FRAME = 20, 84, 7
"""Cells of a key's column, of the box at most, and what of them its border, padding and scroll bar take."""


class KeysScreen(ModalScreen[None], DismissOnceScreen[None]):
    """Lists the keys of a screen. Esc, F1 or q closes it."""

    DEFAULT_CSS = """
    KeysScreen { align: center middle; }
    KeysScreen > VerticalScroll {
        width: 84; max-width: 100%; height: auto; max-height: 100%; padding: 0 2;
        background: $surface; border: round $primary;
        scrollbar-background: $surface; scrollbar-background-hover: $surface; scrollbar-background-active: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q", "dismiss", "Close", show=False)]

    def __init__(self, title: str, screen: Screen[Any], words: Sequence[Label] = ()) -> None:
        """Shows the keys of ``screen``, and explains ``words``, which stand on it."""
        super().__init__()
        self._title = title
        self._keys = keys_of(screen)
        self._words = words

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = self._title
            box.border_subtitle = "↑ ↓ scroll · Esc closes"
            yield Static()

    def on_resize(self, event: events.Resize) -> None:
        width = min(event.size.width, WIDTH) - FRAME
        lines = [_entry(key, "bold", does, width) for key, does in self._keys]
        lines += [Content(), Content.styled("Colours", "bold $primary")]
        lines += [_entry(label.name, STYLES[fate], label.says, width) for fate, label in COLOURS.items()]
        if self._words:
            lines += [Content(), Content.styled("Words", "bold $primary")]
            lines += [_entry(label.name, "bold", label.says, width) for label in self._words]
        self.query_one(Static).update(Content("\n").join(lines))


def keys_of(screen: Screen[Any]) -> list[tuple[str, str]]:
    """What each key of a screen does, keys of one thing together, in the order of its bindings."""
    merged: dict[str, list[str]] = {}
    for binding in screen.BINDINGS:
        if isinstance(binding, Binding) and binding.description:
            merged.setdefault(binding.description, []).extend(key_name(key) for key in binding.key.split(","))
    return [("  ".join(keys), does) for does, keys in merged.items()]


def _entry(name: str, style: str, says: str, width: int) -> Content:
    """The name, and beside it what it is; lines behind the first begin where its text does."""
    gap = " " * max(KEY_WIDTH + 1 - len(name), 1)
    lines = Content(says).wrap(max(width - KEY_WIDTH - 1, 20))
    rest = [Content(" " * (KEY_WIDTH + 1)) + line for line in lines[1:]]
    return Content("\n").join([Content.assemble((name, style), gap) + lines[0], *rest])
