"""The settings of decoding, a row each. Flags, configuration files, ``/retry``, races, requests
to our server and what other servers refuse are made from these rows; ``GenerationSettings`` has defaults and ranges."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from engine.commands import AUTO, MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, DraftBy, GenerationSettings

SettingName = Literal[
    "block_size", "temperature", "seed", "speculation", "draft_by", "thinking", "top_p", "top_k", "max_new_tokens"
]  # fmt: skip
SettingKind = Literal["switch", "whole", "number", "choice", "block size"]
WORDS: dict[SettingKind, str] = {
    "switch": "true or false", "whole": "a whole number", "number": "a number", "choice": "text in quotes",
    "block size": f'a whole number or "{AUTO}"',
}  # fmt: skip
"""What a value of each kind is in a configuration file."""
_DEFAULTS = GenerationSettings()


@dataclass(frozen=True, slots=True)
class Setting:
    name: SettingName
    """The field of ``GenerationSettings``."""
    words: str
    """What it is called where versions of an answer are told apart."""
    metavar: str
    """What stands for the value behind the flag in ``--help``; empty for a switch and a choice."""
    help: str
    """What its flag does."""
    retry: tuple[str, ...]
    """What it is called behind ``/retry``, the first name being the one that is listed."""
    choices: tuple[str, ...] = ()
    common: bool = False
    """Whether ``--help`` itself shows its flag."""
    drafting: bool = False
    """Whether it is a setting of drafting; servers fix these when they start."""

    @property
    def default(self) -> Any:
        return getattr(_DEFAULTS, self.name)

    @property
    def flag(self) -> str:
        """The name of its flag, with underscores: of a switch that is on, the flag that turns it off."""
        return f"no_{self.name}" if self.default is True else self.name

    @property
    def kind(self) -> SettingKind:
        if self.choices:
            return "choice"
        kinds: dict[type, SettingKind] = {bool: "switch", int: "whole", float: "number", str: "block size"}
        return kinds[type(self.default)]

    def is_kind(self, value: object) -> bool:
        if isinstance(value, bool) or self.kind == "switch":
            return isinstance(value, bool) and self.kind == "switch"
        if self.kind == "choice":
            return isinstance(value, str)
        whole = isinstance(value, int) or (self.kind == "block size" and value == AUTO)
        return whole or (self.kind == "number" and isinstance(value, float))

    def complaint(self, value: Any) -> str:
        """What is wrong with a value for its flag; empty when nothing is."""
        if not self.is_kind(value):
            return f"must be {WORDS[self.kind]}, not {json.dumps(value, default=str)}"
        try:
            GenerationSettings(**of_flags({self.flag: value}))  # knows the ranges
        except ValueError as error:
            return f"can't be {json.dumps(value)}: {error}"
        return ""


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "speculation", "speculation", "", "Decode one token at a time.", ("speculation",), common=True, drafting=True
    ),
    Setting(
        "draft_by", "draft by", "", "Who guesses: a drafter, the text itself, or both.", ("draft-by",),
        get_args(DraftBy), drafting=True,
    ),
    Setting("thinking", "thinking", "", "Let the model think first.", ("think", "thinking"), common=True),
    Setting(
        "block_size", "block", f"{AUTO}|{MIN_BLOCK_SIZE}-{MAX_BLOCK_SIZE}", "Tokens per block, or auto.", ("block",),
        common=True, drafting=True,
    ),
    Setting("temperature", "temperature", "0-2", "0 is greedy.", ("temp", "temperature"), common=True),
    Setting("top_p", "top-p", "0-1", "Nucleus to sample from.", ("top-p",)),
    Setting("top_k", "top-k", "N", "Tokens to sample from, 0 all.", ("top-k",)),
    Setting("seed", "seed", "N", "Same seed, same answer.", ("seed",)),
    Setting("max_new_tokens", "longest answer", "N", "Longest answer.", ("max",)),
)  # fmt: skip


def known_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of ``values`` that are settings, of the right kind and in range."""
    known: dict[str, Any] = {}
    kinds: dict[str, Setting] = {setting.name: setting for setting in SETTINGS}
    for name, value in values.items():
        with suppress(ValueError):
            if name in kinds and kinds[name].is_kind(value) and GenerationSettings(**{name: value}):
                known[name] = value
    return known


def restored(
    settings: GenerationSettings, values: Mapping[str, Any], typed: Collection[str] = ()
) -> GenerationSettings:
    """``settings`` with what a conversation's file tells of them, but for those that were ``typed``. What is out of
    range, or of another kind, stays as it is."""
    return replace(settings, **{name: value for name, value in known_settings(values).items() if name not in typed})


def of_flags(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among ``values``, which are by the names of their flags."""
    return {
        setting.name: not values[setting.flag] if setting.default is True else values[setting.flag]
        for setting in SETTINGS
        if setting.flag in values
    }
