"""A flag for each setting of decoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from dflash_tui.core.settings.decoding import SETTINGS, Setting, SettingName

from .options import flag
from .values import BlockSizeType

Body = Callable[..., int]


def decoding_flags(command: Body) -> Body:
    """Give the command without a name a flag for each setting."""
    for setting in reversed(SETTINGS):
        command = flag(_name(setting), topic="decoding", common=setting.common, help=setting.help, **_value(setting))(
            command
        )
    return command


def number_flags(command: Body) -> Body:
    """Give a command that chooses itself how tokens are drafted a flag for each setting that is a number."""
    for setting in reversed(SETTINGS):
        if setting.kind in ("number", "whole"):
            command = decoding_flag(setting.name)(command)
    return command


def decoding_flag(name: SettingName, *called: str, **more: Any) -> Callable[[Body], Body]:
    """The flag of one setting, for a command without topics; ``called`` and ``more`` are passed on to click."""
    (setting,) = (each for each in SETTINGS if each.name == name)
    return click.option(_name(setting), *called, **{**_value(setting), **more})


def _name(setting: Setting) -> str:
    return f"--{setting.flag.replace('_', '-')}"


def _value(setting: Setting) -> dict[str, Any]:
    """Arguments for click that tell of the setting's value: its type, its default and what stands for it."""
    if setting.kind == "switch":
        return {"is_flag": True}
    kinds: dict[str, Any] = {"block size": BlockSizeType(), "choice": click.Choice(setting.choices)}
    kind = kinds.get(setting.kind, type(setting.default))
    return {"type": kind, "default": setting.default, "show_default": True, "metavar": setting.metavar or None}
