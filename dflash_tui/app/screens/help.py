"""The help overlay: the keys as they are bound now, the slash commands, and what the colours mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from dflash_tui.core.slash import COMMANDS

from ..widgets.round_strip import legend

KEY_WIDTH = 18
COLOURS = (
    "accepted   the drafter had guessed what the target chose",
    "corrected  the target's own choice where the first guess went wrong",
    "bonus      one more from the target when every guess was right",
    "rejected   the wrong guess; struck out behind it, what fell with it",
)
_PROMPT_KEYS = {
    "Enter": "send",
    "Ctrl+J  Shift+Enter": "new line",
    "↑ ↓": "earlier questions, from the first and last line",
    "Ctrl+D": "quit when the prompt is empty",
    "Tab": "to the sliders: arrows, Page keys, Home, End or digits set them",
}


class HelpScreen(ModalScreen[None]):
    """Any of Esc, F1 or q closes it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 76;
        max-width: 96%;
        height: auto;
        max-height: 92%;
        padding: 1 2;
        background: $surface;
        border: round $primary;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q", "dismiss", "Close", show=False)]

    def __init__(self, bindings: Mapping[str, ActiveBinding]) -> None:
        super().__init__()
        self._active = bindings

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(Content("\n").join(self._lines()))

    def _lines(self) -> list[Content]:
        keys = [_entry(key, does) for key, does in _PROMPT_KEYS.items()]
        keys += [_entry(key, does) for key, does in self._effective_keys()]
        commands = [_entry(f"/{name} {takes}", does) for name, (takes, does) in COMMANDS.items()]
        return [
            Content.styled("Keys", "bold $primary"), *keys, Content(),
            Content.styled("Commands", "bold $primary"), *commands, Content(),
            Content.styled("Colours", "bold $primary"), legend(), *(Content(line) for line in COLOURS),
        ]  # fmt: skip

    def _effective_keys(self) -> list[tuple[str, str]]:
        """What each key of the screen below does now, keys of one action together."""
        merged: dict[str, list[str]] = {}
        for active in self._active.values():
            binding = active.binding
            if binding.show and binding.description:
                merged.setdefault(binding.description, []).append(self.app.get_key_display(binding))
        return [("  ".join(keys), does) for does, keys in merged.items()]


def _entry(key: str, does: str) -> Content:
    return Content.assemble((f"{key:<{KEY_WIDTH}} ", "bold"), does)
