"""Keys as people read them, and the user's own: which are taken over, and what is wrong with the others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual.binding import ActiveBinding
from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from dflash_tui.core.desk.command import Command
from dflash_tui.core.settings.config import Entry

_KEY = re.compile(r"((ctrl|alt|shift|meta|super|hyper)\+)*([a-z0-9_]+|[!-~])")
_NO_MODIFIER = re.compile(r"[!-~]|[a-z_]*_[a-z_]*|space|enter|tab|backspace|delete|left|right|up|down|home|end")
FIXED = {"enter": "sending", "ctrl+q": "quitting", "ctrl+z": "suspending"}
"""Keys that no action may take: without them there is no way on, or out."""
PALETTE = "ctrl+p"
"""Textual's key for the palette, which has every action by its name."""


@dataclass(frozen=True, slots=True)
class AcceptedKeys:
    """The user's own keys that are taken over, and what is to be said about the others."""

    keymap: dict[str, str]
    """Keys by an action's id, spelt as Textual does and separated by commas; no key twice."""
    mistakes: list[str]
    """What is wrong with each line that can't be followed: a sentence with the line's file and number."""
    losses: list[str]
    """A sentence for each action whose key was given to another one, which is no mistake."""


def accepted_keys(wanted: Mapping[str, Entry], actions: Mapping[str, Command[Any]]) -> AcceptedKeys:
    """Check the keys that the user wants, by an action's id; of two lines that want the same key the later gets it."""
    asked: dict[str, list[str]] = {}
    mistakes: list[str] = []
    for id, entry in wanted.items():
        if problem := _problem(id, str(entry.value), actions):
            mistakes.append(f"{entry.location}: {problem}")
        else:
            asked[id] = _keys(str(entry.value))
    owners = {key: id for id, keys in asked.items() for key in keys}
    left = {id: ",".join(key for key in keys if owners[key] == id) for id, keys in asked.items()}
    keymap = {id: keys for id, keys in left.items() if keys}
    losses: list[str] = []
    for id, action in actions.items():
        own = [] if id in keymap else _keys(action.keys)
        for key in dict.fromkeys([*asked.get(id, ()), *own]):
            winner = owners.get(key, id)
            if winner == id:
                continue
            if key in asked.get(id, ()) and wanted[id].path == wanted[winner].path:
                mistakes.append(
                    f"{wanted[id].location}: {key} goes to {winner}, whose line comes later, and not to {id}"
                )
            else:
                losses.append(f"{key} is now {winner} and no longer {id}")
    return AcceptedKeys(keymap, mistakes, losses)


def _keys(value: str) -> list[str]:
    """The keys of a setting, spelt as Textual does: ``"Ctrl+S, f5"`` gives ``["ctrl+s", "f5"]``."""
    parts = (key.strip() for key in value.split(","))
    return [key if len(key) == 1 else key.lower() for key in parts if key]


def _problem(id: str, value: str, actions: Mapping[str, Command[Any]]) -> str:
    """Why an action can't have these keys; empty when it can."""
    if id not in actions:
        near = get_close_matches(id, [each.id for each in actions.values() if each.keys], 1)
        return f"there is no action {id}; {f'do you mean {near[0]}?' if near else 'the palette (Ctrl+P) lists them'}"
    if not actions[id].keys:
        return f"{id} is a slash command (/{actions[id].slash}) and takes no key"
    for key in _keys(value):
        if not _KEY.fullmatch(key) or not _is_named(key.rpartition("+")[2]):
            return f"{key} is no key; write one like ctrl+s, alt+up or f5"
        if key in FIXED:
            return f"{key} is kept for {FIXED[key]}"
        if actions[id].priority and _NO_MODIFIER.fullmatch(key):
            return f"{id} acts wherever you are, so {key} alone would be missing when you type"
    return "" if _keys(value) else f"{id} has no key left; leave the line out to keep its own"


def _is_named(key: str) -> bool:
    """Whether Textual knows a key by this name: ``a``, ``f5``, or a sign's Unicode name such as ``full_stop``."""
    own = {each.rpartition("+")[2] for each in Keys}.union(KEY_NAME_REPLACEMENTS.values(), FUNCTIONAL_KEYS.values())
    if len(key) < 2 or key in own:
        return True
    try:
        return bool(unicodedata.lookup(key.replace("_", " ")))
    except KeyError:
        return False


_NAMES = {
    "up": "↑", "down": "↓", "left": "←", "right": "→", "escape": "Esc", "comma": ",", "full_stop": ".",
    "left_curly_bracket": "{", "right_curly_bracket": "}", "left_square_bracket": "[", "right_square_bracket": "]",
    "pageup": "PageUp", "pagedown": "PageDown", "plus": "+", "minus": "-", "equals_sign": "=",
}  # fmt: skip


def key_name(key: str) -> str:
    """A key as people write it: ``ctrl+end`` becomes ``Ctrl+End``; a letter alone stays as it is typed."""
    if len(key) == 1:
        return key
    return "+".join(_NAMES.get(key_part, key_part.capitalize()) for key_part in key.split("+"))


NameKeys = Callable[[str], str]
"""Gives a sentence back with the user's own keys in the place of the usual ones."""


def said_with(keymap: Mapping[str, str], actions: Mapping[str, Command[Any]]) -> NameKeys:
    """Puts the user's keys in the place of the usual ones that a sentence names. In that of a key which another action
    has now: the key that stands in, else the slash command, else the palette's key. Keys that are a letter or a sign
    alone stay: a sentence has others."""
    taken = {key for keys in keymap.values() for key in _keys(keys)}

    def in_force(id: str) -> list[str]:
        if id in keymap:
            return _keys(keymap[id])
        return [key for key in _keys(actions[id].keys) if key not in taken]

    names: dict[str, str] = {}
    for id, action in actions.items():
        first = next(iter(_keys(action.keys)), "")
        usual = key_name(first)
        if len(usual) < 2 or (id not in keymap and first not in taken):
            continue
        left = in_force(id) or (in_force(action.stand_in) if action.stand_in else [])
        for spelling in (usual, usual.replace("Ctrl+", "^")):
            if left:
                names[spelling] = key_name(left[0])
            elif action.slash:
                names |= {f"{spelling} {action.slash}": f"/{action.slash}", spelling: f"/{action.slash}"}
            elif PALETTE not in taken:
                names[spelling] = key_name(PALETTE)
    if not names:
        return str
    pattern = re.compile("|".join(rf"(?<![\w+]){re.escape(name)}(?![\w+])" for name in names))
    return lambda text: pattern.sub(lambda match: names[match[0]], text)


def keys_in_force(active: Mapping[str, ActiveBinding]) -> dict[str, str]:
    """The first key of every action that has one, by the action's id."""
    keys: dict[str, str] = {}
    for each in active.values():
        if each.binding.id:
            keys.setdefault(each.binding.id, key_name(each.binding.key))
    return keys
