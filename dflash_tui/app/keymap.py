"""Keys as people read them, and the user's own: which are taken over, and what is wrong with the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from textual.binding import ActiveBinding

from dflash_tui.core.settings.config import Entry

from .actions.action import Action

_KEY = re.compile(r"((ctrl|alt|shift|meta|super|hyper)\+)*([a-z0-9_]+|[!-~])")
_NO_MODIFIER = re.compile(r"[!-~]|[a-z_]*_[a-z_]*|space|enter|tab|backspace|delete|left|right|up|down|home|end")
FIXED = {"enter": "sending", "ctrl+q": "quitting"}
"""Keys that no action may take: without them there is no way on, or out."""


def accepted_keys(wanted: Mapping[str, Entry], actions: Mapping[str, Action]) -> tuple[dict[str, str], list[str]]:
    """The keymap for Textual, and what to tell the user: keys that can't be taken, and actions that lost theirs."""
    keymap: dict[str, str] = {}
    problems: list[str] = []
    for id, entry in wanted.items():
        if problem := _problem(id, str(entry.value), actions):
            problems.append(f"{entry.place}: {problem}")
        else:
            keymap[id] = ",".join(_keys(str(entry.value)))
    return keymap, problems + list(_conflicts(keymap, actions))


def _keys(value: str) -> list[str]:
    """``"Ctrl+S, f5"`` as Textual spells it."""
    parts = (part.strip() for part in value.split(","))
    return [part if len(part) == 1 else part.lower() for part in parts if part]


def _problem(id: str, value: str, actions: Mapping[str, Action]) -> str:
    """Why an action can't have these keys; empty when it can."""
    if id not in actions:
        return f"there is no action {id}; F1 and the palette list them"
    if not actions[id].keys:
        return f"{id} is a slash command (/{actions[id].slash}) and takes no key"
    for key in _keys(value):
        if not _KEY.fullmatch(key):
            return f"{key} is no key; write one like ctrl+s, alt+up or f5"
        if key in FIXED:
            return f"{key} is kept for {FIXED[key]}"
        if actions[id].priority and _NO_MODIFIER.fullmatch(key):
            return f"{id} acts wherever you are, so {key} alone would be missing when you type"
    return "" if _keys(value) else f"{id} has no key left; leave the line out to keep its own"


def _conflicts(keymap: Mapping[str, str], actions: Mapping[str, Action]) -> Iterator[str]:
    """Keys that two actions would have: the one that was asked for gets it."""
    owners: dict[str, str] = {}
    for id, action in actions.items():
        for key in _keys(keymap.get(id, action.keys)):
            other = owners.setdefault(key, id)
            if other != id and (id in keymap or other in keymap):
                winner, loser = (id, other) if id in keymap else (other, id)
                both = "; so would your other line" if loser in keymap else ""
                yield f"{key} is now {winner} and no longer {loser}{both}"


_NAMES = {
    "up": "↑", "down": "↓", "left": "←", "right": "→", "escape": "Esc", "comma": ",", "full_stop": ".",
    "left_curly_bracket": "{", "right_curly_bracket": "}", "left_square_bracket": "[", "right_square_bracket": "]",
}  # fmt: skip


def key_name(key: str) -> str:
    """``ctrl+end`` as ``Ctrl+End``; a letter alone stays as it is typed."""
    if len(key) == 1:
        return key
    return "+".join(_NAMES.get(part, part.capitalize()) for part in key.split("+"))


Said = Callable[[str], str]
"""A sentence with the keys that the user has."""


def said_with(keymap: Mapping[str, str], actions: Mapping[str, Action]) -> Said:
    """Puts the user's keys in the place of the usual ones that a sentence names. Keys that are a letter or a sign alone
    stay: a sentence has others."""
    names: dict[str, str] = {}
    for id, keys in keymap.items():
        usual, own = (key_name(each.split(",")[0]) for each in (actions[id].keys, keys))
        if len(usual) > 1:
            names |= {usual: own, usual.replace("Ctrl+", "^"): own}
    if not names:
        return str
    pattern = re.compile("|".join(rf"(?<![\w+]){re.escape(name)}(?![\w+])" for name in names))
    return lambda text: pattern.sub(lambda found: names[found[0]], text)


def keys_in_force(active: Mapping[str, ActiveBinding]) -> dict[str, str]:
    """The first key of every action that has one, by the action's id."""
    keys: dict[str, str] = {}
    for each in active.values():
        if each.binding.id:
            keys.setdefault(each.binding.id, key_name(each.binding.key))
    return keys
