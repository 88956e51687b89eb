"""Settings from file and environment. Flags beat variables (``DFLASH_CHAT_BLOCK_SIZE=8``), these the user's file, that
the defaults. A setting takes what its flag takes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

import click

from dflash_tui.core.settings.addresses import table_problems
from dflash_tui.core.settings.config import (
    SERVERS_TABLE,
    Config,
    ConfigError,
    read_user,
)
from dflash_tui.core.settings.decoding import SETTINGS

from ..problems import Problem
from .options import Flag, variable_of
from .screen import SCREEN_FLAGS

CORRECT = "Correct the file."
"""What to do about a mistake in a settings file."""
SHARED = ("theme", *SCREEN_FLAGS, "device", "weights", "offline")
"""Settings that the other commands follow too."""
_GONE = {
    "keys": "every action is in the palette and behind a slash",
    "presets": "dflash-chat --system @tutor.md --temperature 0.3 opens a chat so, and a shell's alias names it",
}
"""Tables of earlier versions, and what does their work."""
_WORDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "text in quotes"}


def settable(program: click.Command) -> dict[str, click.Parameter]:
    """The flags that a file or the environment may set, by name; MODEL is one of them."""
    options = [option for option in program.params if not isinstance(option, Flag) or option.keeps]
    return {option.name: option for option in options if option.name and option.name != "version"}


def load_config(program: click.Command) -> Config:
    """Both files, checked. Raises :class:`Problem` with the file and the line of the first thing that is wrong."""
    try:
        config = read_user()
    except ConfigError as error:
        raise Problem(f"{error}.", CORRECT) from error
    for problem in problems(program, config):
        raise Problem(problem, CORRECT)
    if os.environ.get(gone := variable_of("preset")):
        raise Problem(f"{gone} is set, and no setting goes by it: {_GONE['presets']}.", "Unset it.")
    return config


def defaults_of(config: Config, names: Iterable[str] | None = None) -> dict[str, Any]:
    """What click takes instead of a flag's own default; ``names`` restricts it."""
    return {name: entry.value for name, entry in config.settings.items() if names is None or name in names}


def problems(program: click.Command, config: Config) -> Iterator[str]:
    """What is wrong with the settings, in words that begin with file and line."""
    known = settable(program)
    for name, entry in config.settings.items():
        if name not in known:
            near = get_close_matches(name, [*known, SERVERS_TABLE], 1)
            meant = f"do you mean {near[0]}?" if near else "dflash-chat help lists the flags, by whose names they go"
            yield f"{entry.location}: there is no setting {name}; {_GONE.get(name, meant)}"
        elif complaint := _complaint(known[name], entry.value):
            yield f"{entry.location}: {name} {complaint}"
    for name, table in config.servers.items():
        yield from table_problems(name, table)


def _complaint(parameter: click.Parameter, value: Any) -> str:
    """What is wrong with a value for this flag; empty when nothing is."""
    for setting in SETTINGS:
        if setting.flag == parameter.name:
            return setting.complaint(value)
    expected = _type_of(parameter)
    if not (type(value) is expected or (expected is float and type(value) is int)):
        return f"must be {_WORDS[expected]}, not {json.dumps(value, default=str)}"
    try:
        parameter.type.convert(value, parameter, None)
    except click.ClickException as error:
        return f"can't be {json.dumps(value)}: {error.message.rstrip('.')}"
    return ""


def _type_of(parameter: click.Parameter) -> type:
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return bool
    if isinstance(parameter.type, click.types.IntParamType):
        return int
    if isinstance(parameter.type, click.types.FloatParamType):
        return float
    return str
