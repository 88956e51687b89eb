"""The help overlay: the keys as they are bound now, the slash commands, and what the colours mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from textual.binding import ActiveBinding
from textual.content import Content

from dflash_tui.core.desk.command import Command
from dflash_tui.core.figures.labels import COLOURS, FIGURES, MODELS, SERVERS, SIGNS

from ..keymap import key_name
from ..widgets.rounds.round_strip import legend
from .box import BoxScreen, entry, head

WATCHING = ("steps", "teach", "race", "present", "lens", "predict", "replay")
"""Actions that show how an answer comes about: what this program is for, so they come first."""

_PROMPT_KEYS = {
    "Enter": "send; while an answer runs: send after it",
    "Ctrl+J  Alt+Enter": "new line; so do \\ Enter, and Shift+Enter where the terminal tells it",
    "↑  ↓": "earlier and later questions, first the one that waits",
    "PageUp  PageDown": "scroll the transcript; End follows it again",
    "→": "an example, and the next one, before the first question",
    "Tab": "completes a command, else leads to the sliders: arrows, Home, End, digits",
    "Shift+drag": "select text as the terminal does; --no-mouse leaves it the mouse for good",
    "Ctrl+P": "the palette: everything by its name",
    "Alt+Z  Ctrl+Y": "undo, and redo, what was typed",
    "Ctrl+Z": "suspend: back to the shell, whose fg goes on here",
    "Ctrl+Q  Ctrl+D": "quit; Ctrl+D when the prompt is empty",
}


class HelpScreen(BoxScreen):
    """Shows the keys, the slash commands and the colours of the screen below."""

    def __init__(self, bindings: Mapping[str, ActiveBinding], actions: Iterable[Command[Any]]) -> None:
        super().__init__()
        self._active = bindings
        self._actions = list(actions)

    def lines(self, width: int) -> list[Content]:
        effective = self._effective_keys()
        groups = (
            ("See how it is written", [(keys, does) for id, keys, does in effective if id in WATCHING]),
            ("Write", list(_PROMPT_KEYS.items())),
            ("Other keys", [(keys, does) for id, keys, does in effective if id not in WATCHING]),
        )
        named = [(f"/{action.slash} {action.takes}", action.title) for action in self._actions if action.slash]
        commands = [entry(command, does, width) for command, does in named]
        served = getattr(self.app.screen_stack[-2], "served", False)
        known = [*COLOURS.values(), *(SERVERS.values() if served else ())]
        colours = [entry(label.name, label.says, width) for label in known]
        return [
            *self._group(*groups[0], width),
            head("Colours"), legend(server=served), *colours, Content(),
            *self._group("Signs of a round", [(label.name, label.says) for label in SIGNS], width),
            *self._group("Words", [(label.name, label.says) for label in (*MODELS, *FIGURES)], width),
            *(line for title, entries in groups[1:] for line in self._group(title, entries, width)),
            head("Commands"), *commands,
        ]  # fmt: skip

    @staticmethod
    def _group(title: str, entries: Iterable[tuple[str, str]], width: int) -> list[Content]:
        return [head(title), *(entry(key, does, width) for key, does in entries), Content()]

    def _effective_keys(self) -> list[tuple[str, str, str]]:
        """What each key of the screen below does now, keys of one action together: an action's id, keys, what it
        does."""
        merged: dict[str, list[str]] = {}
        ids: dict[str, str] = {}
        order = [action.id for action in self._actions]
        own = [active.binding for active in self._active.values() if active.binding.id in order]
        for binding in sorted(own, key=lambda binding: order.index(str(binding.id))):
            if binding.show and binding.description:
                ids.setdefault(binding.description, str(binding.id))
                merged.setdefault(binding.description, []).append(key_name(binding.key))
        return [(ids[does], "  ".join(keys), does) for does, keys in merged.items()]
