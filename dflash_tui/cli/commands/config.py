"""``dflash-chat config``: the settings in force, where each comes from, and what is wrong with their files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.settings.config import (
    PRESETS_TABLE,
    SERVERS_TABLE,
    Config,
    ConfigError,
    files,
    read_config,
    user_file,
)
from dflash_tui.core.settings.presets import file_problems

from ..flags.config_files import defaults_of, load_config, problems, settable
from ..flags.screen import themes_instead_of


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
        tables = {f"{SERVERS_TABLE}.{name}": table for name, table in loaded.servers.items()}
        for name, table in loaded.presets.items():
            tables[f"{PRESETS_TABLE}.{name if name.isidentifier() else json.dumps(name)}"] = table
        for title, table in tables.items():
            click.echo(f"\n[{title}]")
            for name, entry in table.items():
                click.echo(_line(f"{name} = {_as_text(entry.value)}", entry.location))
        return ExitCode.OK

    @config.command()
    def path() -> int:
        """Print the files that are read, and those that would be."""
        existing = list(files())
        own = user_file()
        for file in [*existing, *([own] if own and own not in existing else [])]:
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
        faults = list(problems(program, config))
        yield from faults or [*_theme_mistakes(config), *file_problems(config)]
    except ConfigError as error:
        yield str(error)


def _theme_mistakes(config: Config) -> Iterator[str]:
    entry = config.settings.get("theme")
    if entry is not None and (known := themes_instead_of(entry.value)):
        yield f"{entry.location}: there is no theme {entry.value}; choose {', '.join(known)}"


def _shown(name: str, context: click.Context, loaded: Config) -> str:
    value, source = context.params[name], context.get_parameter_source(name)
    if source is ParameterSource.ENVIRONMENT:
        origin = f"environment, {settable(context.command)[name].envvar}"
    elif source is ParameterSource.DEFAULT_MAP:
        origin = loaded.settings[name].location
    else:
        origin = "default"
    if value is None:
        return _line(f"# {name} =", origin)
    return _line(f"{name} = {json.dumps(value, default=str)}", origin)


def _as_text(value: Any) -> str:
    """The value of a table's entry. A table of its own is a server's headers: what these hold may be secret."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'{json.dumps(header)} = "..."' for header in value) + "}"
    return json.dumps(value)


def _line(setting: str, origin: str) -> str:
    return f"{setting:<34} # {origin}"
