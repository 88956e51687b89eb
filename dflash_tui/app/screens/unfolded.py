"""What is folded in the transcript, shown whole: files that went with questions, and what programs wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from dflash_tui.core.conversation.folds import Folded
from dflash_tui.core.text.counted import counted
from dflash_tui.core.text.spans import Span
from dflash_tui.core.text.wrapping import shortened

from ..widgets.token_log import TokenLog
from .once import DismissOnceScreen

SHOWN = 200_000
"""Characters that are laid out at a time: more would take a noticeable while."""


class UnfoldedScreen(ModalScreen[None], DismissOnceScreen[None]):
    """Shows a folded text whole, one at a time; ← → go to the conversation's others."""

    DEFAULT_CSS = """
    UnfoldedScreen { align: center middle; }
    UnfoldedScreen > Vertical {
        width: 96%;
        height: 92%;
        padding: 0 1;
        background: $surface;
        border: round $primary;
        border-title-color: $primary;
        border-subtitle-color: $verdict-pending;
    }
    UnfoldedScreen TokenLog { height: 1fr; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Close", show=False, priority=True),
        Binding("left,h", "turn(-1)", "Before", show=False, priority=True),
        Binding("right,l", "turn(1)", "Behind", show=False, priority=True),
    ]

    def __init__(self, folded: Sequence[Folded], index: int) -> None:
        super().__init__()
        self._folded = folded
        self._index = index

    def compose(self) -> ComposeResult:
        with Vertical():
            yield TokenLog(id="unfolded")

    def on_mount(self) -> None:
        self.call_after_refresh(self._show)  # laid out once, at its width
        self.query_one(TokenLog).focus()

    def action_turn(self, by: int) -> None:
        self._index = (self._index + by) % len(self._folded)
        self._show()

    def action_leave(self) -> None:
        self.dismiss(None)

    def _show(self) -> None:
        box, log, folded = self.query_one(Vertical), self.query_one(TokenLog), self._folded[self._index]
        others = f"{self._index + 1}/{len(self._folded)} · ← → others · " if len(self._folded) > 1 else ""
        box.border_title = shortened(folded.head.removeprefix("▸ "), max(self.size.width - 12, 1)).replace("[", r"\[")
        box.border_subtitle = f"{others}↑ ↓ scroll · Esc closes"
        left = len(folded.text) - SHOWN
        log.clear()
        log.append([Span(folded.text[:SHOWN] or "(it is empty)", "output")])
        if left > 0:
            log.append([Span(f"\n… {counted(left, 'more character')}", "note")])
        log.scroll_to(y=0, animate=False, immediate=True)
