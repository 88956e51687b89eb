"""Jump keys: every part that can have the focus shows a letter, and the letter goes there."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase

from textual import events
from textual.app import ComposeResult
from textual.geometry import Offset
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from .once import LeavesOnce

PREFERRED = {
    "prompt": "p", "transcript": "t", "block": "b", "temperature": "e", "pace": "c", "rate": "s", "histogram": "h",
    "positions": "a", "cost": "m", "context": "x", "gpu": "g", "steps": "r",
}  # fmt: skip
"""Letters that stay the same whatever else is on the screen, by the widget's id."""


def letters(ids: Iterable[str | None]) -> list[str]:
    """A letter for each id, all different: the preferred one where there is one. Parts beyond the alphabet get none."""
    known = [PREFERRED.get(id or "", "") for id in ids]
    rest = iter([letter for letter in ascii_lowercase if letter not in PREFERRED.values()])
    seen: set[str] = set()
    result = []
    for letter in known:
        chosen = letter if letter and letter not in seen else next(rest, "")
        seen.add(chosen)
        result.append(chosen)
    return result


class JumpScreen(ModalScreen[Widget | None], LeavesOnce[Widget | None]):
    """Answers with the part whose letter was pressed; any other key leaves."""

    DEFAULT_CSS = """
    JumpScreen { background: $background 40%; }
    JumpScreen > .hint { dock: bottom; width: 100%; text-align: center; color: $foreground; background: $panel; }
    JumpScreen > .letter {
        position: absolute;
        width: 3;
        height: 1;
        content-align: center middle;
        color: $background;
        background: $primary;
        text-style: bold;
    }
    """

    def __init__(self, parts: Iterable[Widget]) -> None:
        super().__init__()
        visible = [part for part in parts if part.region]
        found = zip(letters(part.id for part in visible), visible, strict=True)
        self._parts = {letter: part for letter, part in found if letter}

    def compose(self) -> ComposeResult:
        for letter, part in self._parts.items():
            label = Static(letter, classes="letter")
            label.offset = Offset(part.region.x, part.region.y)
            yield label
        yield Static("A letter goes to that part of the screen; any other key goes back.", classes="hint")

    def on_key(self, event: events.Key) -> None:
        event.stop()
        self.dismiss(self._parts.get(event.key))
