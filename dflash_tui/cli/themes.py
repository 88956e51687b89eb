"""The flag ``--theme``: a name that nobody knows is told before anything opens."""

from __future__ import annotations

import click
from click.core import ParameterSource

from .background import AUTO
from .problems import Problem


def check_theme(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """An option's ``callback``. :class:`Problem` for an unknown name that was typed; others the screen tells."""
    typed = context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    if name is None or name == AUTO or not typed:
        return name
    # Only those who type the flag wait for Textual, which has themes of its own.
    from dflash_tui.app.theming import theme_names

    known = theme_names()
    if name not in known:
        raise Problem(f"There is no theme {name!r}.", f"Choose one: {', '.join([AUTO, *known])}.")
    return name
