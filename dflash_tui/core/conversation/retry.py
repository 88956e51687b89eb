"""The same question once more, as it is typed: ``/retry``, ``/retry 3``, ``/retry block 8 temp 0.7``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from engine.commands import GenerationSettings

from ..settings.decoding import SETTINGS, Setting
from ..source import Feature
from .slash import Argument, SlashError

DRAFTER = "drafter"
TAKES = f"[n] [{'|'.join(setting.retry[0] for setting in SETTINGS)}|{DRAFTER} VALUE]"
EXAMPLE = "such as /retry block 4 or /retry 2 speculation off"
_TAKES = {"switch": "on|off", "number": "a number", "whole": "a number", "block size": "a number"}
_BY_WORD = {word: setting for setting in SETTINGS for word in setting.retry}


@dataclass(frozen=True, slots=True)
class Retry:
    """What is to be asked once more, and how."""

    which: str = ""
    """The question's number; empty for the newest."""
    settings: GenerationSettings | None = None
    """For this answer alone; None where none was named."""
    features: tuple[Feature, ...] = ()
    """What the source must be able to follow."""
    drafter: str = ""
    """Another drafter; empty for the one that is loaded."""


def parse_retry(text: str, settings: GenerationSettings) -> Retry:
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
            setting = _setting(key)
            takes = f"{setting.name.replace('_', ' ')} takes {_TAKES.get(setting.kind) or '|'.join(setting.choices)}"
            changes[setting.name] = Argument(value, takes).setting(setting)
    try:
        changed = replace(settings, **changes) if changes else None
    except ValueError as error:
        raise SlashError(f"{error}.") from None
    return Retry(which, changed, tuple(changes), drafter)  # type: ignore[arg-type]  # the keys are features


def _setting(word: str) -> Setting:
    if word in _BY_WORD:
        return _BY_WORD[word]
    near = get_close_matches(word, _BY_WORD, 1)
    hint = f"did you mean {near[0]}?" if near else f"{EXAMPLE}."
    raise SlashError(f"There is no setting “{word}”: {hint}")
