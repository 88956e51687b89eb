"""Flags about the screen: how to draw, and which theme."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click
from click.core import ParameterSource

from dflash_tui.core.settings.config import ScreenOptions

from ..problems import Problem
from .completing import among
from .options import variable_of

SCREEN_FLAGS = {
    "ascii": "Draw with ASCII characters only.",
    "reduced_motion": "Nothing blinks or plays by itself.",
    "no_mouse": "Leave the mouse to the terminal, which selects text with it.",
}
"""The flags on how to draw, by their names, and their help."""


def chosen_screen_options(ascii: bool, reduced_motion: bool, no_mouse: bool) -> ScreenOptions:
    """The flags' screen options; ASCII on a terminal that isn't UTF-8."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return ScreenOptions(ascii or encoding != "utf8", reduced_motion, not no_mouse)


def screen_flags(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command that can open a screen the flags on how to draw."""
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
    """The screen options that the flags of :func:`screen_flags` ask for."""
    context = click.get_current_context()
    chosen = {name: bool(context.meta.get(f"{__name__}.{name}")) for name in SCREEN_FLAGS}
    return chosen_screen_options(**chosen)


def check_theme(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """The callback of ``--theme``. Raises :class:`Problem` for an unknown name that was typed; the screen tells of
    others."""
    typed = context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    if name is not None and typed and (known := themes_instead_of(name)):
        raise Problem(f"There is no theme {name!r}.", f"Choose one: {', '.join(known)}.")
    return name


def themes() -> list[str]:
    """The themes to choose from."""
    # Only those who choose one wait for Textual.
    from dflash_tui.app.theming import theme_names

    return theme_names()


def theme_flag(help: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option("--theme", metavar="NAME", callback=check_theme, shell_complete=among(themes), help=help)


def themes_instead_of(theme: str) -> list[str]:
    """The themes to choose from where there is none called ``theme``; nothing where there is."""
    return [] if theme in (known := themes()) else known
