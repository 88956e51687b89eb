"""Options that know their topic: ``--help`` shows what most people need on one screen, ``help TOPIC`` the rest."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import Any

import click

TOPICS = {
    "decoding": "how tokens are drafted and chosen",
    "models": "which models, where they come from, where they run",
    "servers": "attaching to a server that runs elsewhere",
    "scripts": "prompts in pipes: what is printed, exit codes",
    "screen": "how the chat looks, where it keeps things",
    "chats": "going on with older ones; dflash-chat sessions lists them",
}
"""Every flag belongs to one. A new topic is a line here."""
KEPT_TOPICS = ("decoding", "models", "servers", "screen")
"""Flags of these topics make sense beyond one run."""


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return f"DFLASH_CHAT_{name.upper()}"


class Flag(click.Option):
    """An option with a topic, maybe shown by ``--help`` itself. One that ``keeps`` may stand in a configuration file
    and the environment."""

    def __init__(self, *args: Any, topic: str, common: bool = False, keeps: bool | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.topic = topic
        self.common = common
        self.keeps = topic in KEPT_TOPICS if keeps is None else keeps
        if self.keeps and self.name:
            self.envvar = variable_of(self.name)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """What a complaint calls it; its variable too, where that is set."""
        hint = super().get_error_hint(ctx)
        return f"{hint} or {self.envvar}" if self.keeps and os.environ.get(str(self.envvar)) else hint


def flag(
    *names: str, topic: str, common: bool = False, **options: Any
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """``click.option`` for a :class:`Flag`; ``common`` puts it into ``--help`` too."""
    return click.option(*names, cls=Flag, topic=topic, common=common, **options)


def flags_of(command: click.Command, topic: str) -> list[Flag]:
    return [option for option in command.params if isinstance(option, Flag) and option.topic == topic]


def write_options(
    command: click.Command, context: click.Context, formatter: click.HelpFormatter, wanted: Collection[click.Parameter]
) -> None:
    """The options of ``command`` among ``wanted``, a line or two each."""
    options = [option for option in command.get_params(context) if isinstance(option, click.Option)]
    rows = [record for option in options if option in wanted and (record := option.get_help_record(context))]
    with formatter.section("Options"):
        formatter.write_dl(rows)
