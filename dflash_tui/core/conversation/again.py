"""The same question once more, as it is typed: ``/retry``, ``/retry 3``, ``/retry block 8 temp 0.7``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from engine.commands import GenerationSettings

from ..source import Feature
from .slash import Argument, SlashError

TAKES = "[n] [block|temp|seed|speculation|think|top-p|top-k|max|drafter VALUE]"
EXAMPLE = "such as /retry block 4 or /retry 2 speculation off"
FIELDS: dict[str, Feature] = {
    "block": "block_size", "temp": "temperature", "temperature": "temperature", "seed": "seed",
    "speculation": "speculation", "think": "thinking", "thinking": "thinking", "top-p": "top_p", "top-k": "top_k",
    "max": "max_new_tokens",
}  # fmt: skip
"""What a setting is called here, and which one it is."""
DRAFTER = "drafter"


@dataclass(frozen=True, slots=True)
class Again:
    """What is to be asked once more, and how."""

    which: str = ""
    """The question's number; empty for the newest."""
    settings: GenerationSettings | None = None
    """For this answer alone; None where none was named."""
    features: tuple[Feature, ...] = ()
    """What the source must be able to follow."""
    drafter: str = ""
    """Another drafter; empty for the one that is loaded."""


def parse_again(text: str, settings: GenerationSettings) -> Again:
    """``text`` as it stands behind the command, ``settings`` those that hold. Raises ``SlashError``."""
    words = text.replace("=", " ").split()
    which = words.pop(0).removeprefix("#") if words and words[0].removeprefix("#").isdecimal() else ""
    if len(words) % 2:
        raise SlashError(f"“{words[-1]}” has no value: {EXAMPLE}.")
    changes: dict[str, Any] = {}
    drafter = ""
    for key, value in zip(words[::2], words[1::2], strict=True):
        if key == DRAFTER:
            drafter = value
        else:
            changes[_field(key)] = _value(_field(key), value)
    try:
        changed = replace(settings, **changes) if changes else None
    except ValueError as error:
        raise SlashError(f"{error}.") from None
    return Again(which, changed, tuple(changes), drafter)  # type: ignore[arg-type]  # the keys are features


def _field(key: str) -> Feature:
    if key in FIELDS:
        return FIELDS[key]
    near = get_close_matches(key, FIELDS, 1)
    hint = f"did you mean {near[0]}?" if near else f"{EXAMPLE}."
    raise SlashError(f"There is no setting “{key}”: {hint}")


def _value(field: Feature, text: str) -> Any:
    argument = Argument(text, f"{field.replace('_', ' ')} takes {'on|off' if field in _SWITCHES else 'a number'}")
    if field in _SWITCHES:
        return argument.switch()
    if field == "block_size":
        return argument.block_size()
    return argument.number() if field in ("temperature", "top_p") else argument.integer()


_SWITCHES: tuple[Feature, ...] = ("speculation", "thinking")
