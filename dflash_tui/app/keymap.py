"""Keys as people read them."""

from __future__ import annotations

from collections.abc import Mapping

from textual.binding import ActiveBinding

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


def keys_in_force(active: Mapping[str, ActiveBinding]) -> dict[str, str]:
    """The first key of every action that has one, by the action's id."""
    keys: dict[str, str] = {}
    for each in active.values():
        if each.binding.id:
            keys.setdefault(each.binding.id, key_name(each.binding.key))
    return keys
