"""The keys of a screen that has few of its own, and what its colours and its words mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen

from dflash_tui.core.figures.labels import COLOURS, Label

from ..keymap import key_name
from ..widgets.rounds.round_strip import STYLES
from .box import BoxScreen, entry, head


class KeysScreen(BoxScreen):
    """Lists the keys of a screen."""

    def __init__(self, title: str, screen: Screen[Any], words: Sequence[Label] = ()) -> None:
        """Shows the keys of ``screen``, and explains ``words``, which stand on it."""
        super().__init__()
        self.HEAD = title
        self._keys = keys_of(screen)
        self._words = words

    def lines(self, width: int) -> list[Content]:
        lines = [entry(key, does, width) for key, does in self._keys]
        lines += [Content(), head("Colours")]
        lines += [entry(label.name, label.says, width, STYLES[fate]) for fate, label in COLOURS.items()]
        if self._words:
            lines += [Content(), head("Words"), *(entry(label.name, label.says, width) for label in self._words)]
        return lines


def keys_of(screen: Screen[Any]) -> list[tuple[str, str]]:
    """What each key of a screen does, keys of one thing together, in the order of its bindings."""
    merged: dict[str, list[str]] = {}
    for binding in screen.BINDINGS:
        if isinstance(binding, Binding) and binding.description:
            merged.setdefault(binding.description, []).extend(key_name(key) for key in binding.key.split(","))
    return [("  ".join(keys), does) for does, keys in merged.items()]
