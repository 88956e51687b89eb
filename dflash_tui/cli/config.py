"""Settings from files and environment, and ``dflash-chat config`` to show where each comes from. Flags beat variables
(``DFLASH_CHAT_BLOCK_SIZE=8``), these the project's file, that the user's, all the defaults. A setting takes what its
flag takes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.settings.addresses import is_address, table_problems
from dflash_tui.core.settings.config import (
    KEYS_TABLE,
    PRESETS_TABLE,
    PROJECT_FILE,
    SERVERS_TABLE,
    Config,
    ConfigError,
    ScreenOptions,
    files,
    read_all,
    read_config,
    user_file,
)
from dflash_tui.core.settings.presets import file_problems, preset_problems
from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.core.source import SourceFactory
from dflash_tui.sources import Attach, Engine, Target
from engine.commands import AUTO, GenerationSettings

from .background import themes_instead_of
from .block_size import BlockSizeType
from .help import Flag, variable_of
from .keys import key_mistakes
from .problems import Problem

CORRECT = "Correct the file; dflash-chat config check looks again."
"""What to do about a mistake in a settings file."""
RETIRED = ("verify",)
"""Settings of earlier versions: a file may still have them, and they do nothing."""
SCREEN_FLAGS = {
    "ascii": "Draw with ASCII characters only.",
    "reduced_motion": "Nothing blinks or plays by itself.",
    "no_mouse": "Leave the mouse to the terminal, which selects text with it.",
}
"""How to draw, and what that means."""
SHARED = ("theme", *SCREEN_FLAGS, "device", "weights", "offline")
"""Settings that the other commands follow too."""
_WORDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "text in quotes"}


def settable(program: click.Command) -> dict[str, click.Parameter]:
    """The flags that a file or the environment may set, by name; MODEL is one of them."""
    kept = [option for option in program.params if not isinstance(option, Flag) or option.keeps]
    return {option.name: option for option in kept if option.name and option.name != "version"}


def load_config(program: click.Command) -> Config:
    """Both files, checked. Raises :class:`Problem` with the file and the line of the first thing that is wrong."""
    try:
        config = read_all()
    except ConfigError as error:
        raise Problem(f"{error}.", CORRECT) from error
    for problem in problems(program, config):
        raise Problem(problem, CORRECT)
    return config


def defaults_of(config: Config, names: Iterable[str] | None = None) -> dict[str, Any]:
    """What click takes instead of a flag's own default; ``names`` restricts it."""
    return {name: entry.value for name, entry in config.settings.items() if names is None or name in names}


def problems(program: click.Command, config: Config) -> Iterator[str]:
    """What is wrong with the settings, in words that begin with file and line."""
    known = settable(program)
    for name, entry in config.settings.items():
        if name in RETIRED:
            continue
        if name not in known:
            near = get_close_matches(name, [*known, KEYS_TABLE, SERVERS_TABLE, PRESETS_TABLE], 1)
            hint = f"; do you mean {near[0]}?" if near else "; dflash-chat config show lists them"
            yield f"{entry.place}: there is no setting {name}{hint}"
        elif complaint := _complaint(known[name], entry.value):
            yield f"{entry.place}: {name} {complaint}"
        elif entry.path.name == PROJECT_FILE and (name == "server" or is_address(str(entry.value))):
            yield f"{entry.place}: {name} names a server in a project's file, which anybody may write; type it"
    for name, table in config.servers.items():
        yield from table_problems(name, table)
    for name, table in config.presets.items():
        yield from preset_problems(name, table)
    for name, entry in config.keys.items():
        if not isinstance(entry.value, str):
            yield f'{entry.place}: {name} must be keys in quotes, such as "ctrl+s" or "f5,alt+t"'


def _complaint(parameter: click.Parameter, value: Any) -> str:
    """What is wrong with a value for this flag; empty when nothing is."""
    expected = _type_of(parameter)
    is_size = isinstance(parameter.type, BlockSizeType)
    is_fit = type(value) is expected or (expected is float and type(value) is int) or (is_size and value == AUTO)
    if not is_fit:
        words = f'{_WORDS[expected]} or "{AUTO}"' if is_size else _WORDS[expected]
        return f"must be {words}, not {json.dumps(value, default=str)}"
    try:
        parameter.type.convert(value, parameter, None)
        if parameter.name in GenerationSettings.__dataclass_fields__:
            change: dict[str, Any] = {parameter.name: value}
            replace(GenerationSettings(), **change)  # knows the ranges
    except click.ClickException as error:
        return f"can't be {json.dumps(value)}: {error.message.rstrip('.')}"
    except ValueError as error:
        return f"can't be {json.dumps(value)}: {error}"
    return ""


def _type_of(parameter: click.Parameter) -> type:
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return bool
    if isinstance(parameter.type, click.types.IntParamType | BlockSizeType):
        return int
    if isinstance(parameter.type, click.types.FloatParamType):
        return float
    return str


@dataclass(frozen=True, slots=True)
class Invocation:
    """What every command of one run of the program shares: click hands it to them as its object."""

    engine: Engine
    attach: Attach
    config: Config
    """The files, read once."""

    def source(self, target: Target) -> SourceFactory:
        """The engine with a pair, or a server."""
        return self.attach(target) if isinstance(target, ServerAddress) else self.engine(target)


def chosen_screen_options(ascii: bool, reduced_motion: bool, no_mouse: bool, config: Config) -> ScreenOptions:
    """The flags' screen options and the file's keys; ASCII on a terminal that isn't UTF-8."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return ScreenOptions(ascii or encoding != "utf8", reduced_motion, not no_mouse, config.keys)


def screen_flags(command: Callable[..., int]) -> Callable[..., int]:
    """How to draw, as options of a command that can open a screen."""
    for name, meaning in reversed(SCREEN_FLAGS.items()):
        option = click.option(
            f"--{name.replace('_', '-')}", is_flag=True, envvar=variable_of(name), expose_value=False, callback=_keep,
            help=meaning,
        )  # fmt: skip
        command = option(command)
    return command


def _keep(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    context.meta[f"{__name__}.{parameter.name}"] = value


def saved_screen_options() -> ScreenOptions:
    """What :func:`screen_flags` were given."""
    context = click.get_current_context()
    chosen = {name: bool(context.meta.get(f"{__name__}.{name}")) for name in SCREEN_FLAGS}
    return chosen_screen_options(**chosen, config=context.obj.config)


def config_command(program: click.Command) -> click.Command:
    """``dflash-chat config show|path|check`` for the flags of ``program``."""

    @click.group("config", context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
    @click.pass_context
    def config(context: click.Context) -> int:
        """Settings: what is in force and where it came from.

        Flags come before the environment (DFLASH_CHAT_BLOCK_SIZE=8), then .dflash-chat.toml of the project, then
        config.toml of the user.
        """
        return int(context.invoke(show)) if context.invoked_subcommand is None else ExitCode.OK

    @config.command()
    def show() -> int:
        """Print every setting as a line of config.toml, and where its value came from."""
        loaded = load_config(program)
        context = program.make_context("dflash-chat", [], default_map=defaults_of(loaded))
        for name in settable(program):
            click.echo(_shown(name, context, loaded))
        if loaded.keys:
            click.echo(f"\n[{KEYS_TABLE}]")
        for name, entry in loaded.keys.items():
            click.echo(_line(f"{name} = {json.dumps(entry.value)}", entry.place))
        for server, table in loaded.servers.items():
            click.echo(f"\n[{SERVERS_TABLE}.{server}]")
            for name, entry in table.items():
                click.echo(_line(f"{name} = {_told(name, entry.value)}", entry.place))
        for preset, table in loaded.presets.items():
            click.echo(f"\n[{PRESETS_TABLE}.{preset if preset.isidentifier() else json.dumps(preset)}]")
            for name, entry in table.items():
                click.echo(_line(f"{name} = {json.dumps(entry.value)}", entry.place))
        return ExitCode.OK

    @config.command()
    def path() -> int:
        """Print the files that are read, and those that would be."""
        found = list(files())
        own = user_file()
        for file in [*found, *([own] if own and own not in found else [])]:
            click.echo(f"{file}{'' if file.exists() else '   (not there)'}")
        return ExitCode.OK

    @config.command()
    @click.argument("file", required=False, type=click.Path(path_type=Path))
    def check(file: Path | None) -> int:
        """Look for mistakes in FILE; without it, in the files that are read."""
        wrong = [line for path in ([file] if file else files()) for line in _check(program, path)]
        for line in wrong:
            click.echo(line)
        if not wrong:
            click.echo("No mistakes.")
        return ExitCode.USAGE if wrong else ExitCode.OK

    return config


def _check(program: click.Command, path: Path) -> Iterator[str]:
    try:
        config = read_config(path)
        found = list(problems(program, config))
        yield from found or [*_theme_mistakes(config), *key_mistakes(config.keys), *file_problems(config)]
    except ConfigError as error:
        yield str(error)


def _theme_mistakes(config: Config) -> Iterator[str]:
    entry = config.settings.get("theme")
    if entry is not None and (known := themes_instead_of(entry.value)):
        yield f"{entry.place}: there is no theme {entry.value}; choose {', '.join(known)}"


def _shown(name: str, context: click.Context, loaded: Config) -> str:
    value, source = context.params[name], context.get_parameter_source(name)
    if source is ParameterSource.ENVIRONMENT:
        origin = f"environment, {settable(context.command)[name].envvar}"
    elif source is ParameterSource.DEFAULT_MAP:
        origin = loaded.settings[name].place
    else:
        origin = "default"
    if value is None:
        return _line(f"# {name} =", origin)
    return _line(f"{name} = {json.dumps(value, default=str)}", origin)


def _told(name: str, value: Any) -> str:
    """A server's setting; what its headers hold may be secret."""
    if name == "headers":
        return "{" + ", ".join(f'{json.dumps(header)} = "..."' for header in value) + "}"
    return json.dumps(value)


def _line(setting: str, origin: str) -> str:
    return f"{setting:<34} # {origin}"
