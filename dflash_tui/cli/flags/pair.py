"""The pair that a command runs: the flags that name it, and loading it where nobody talks to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from dflash_tui.core.settings.addresses import is_address
from dflash_tui.core.settings.config import ConfigError, read_user
from dflash_tui.core.settings.servers import DIALECTS
from engine.commands import AUTO, EngineOptions, WeightChoice, WeightFormat
from engine.errors import UsageFailure

from ..headless.status import ProgressLine
from ..problems import Problem
from .completing import A_MODEL
from .options import Flag, flag
from .values import ModelName

if TYPE_CHECKING:
    from engine.runner import Runner

Body = Callable[..., int]

DEVICE = flag(
    "--device",
    topic="models",
    common=True,
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    help="Where to compute.",
)
WEIGHTS = flag(
    "--weights",
    topic="models",
    common=True,
    type=click.Choice([AUTO, *get_args(WeightFormat)]),
    default=AUTO,
    help="How weights are held; auto: as fits here.",
)
OFFLINE = flag("--offline", topic="models", is_flag=True, help="Never ask the hub.")


class ServerName(click.ParamType):  # type: ignore[type-arg]  # older clicks have no type arguments
    """A name of ``[servers]``; whether there is such a server is for whoever attaches to say."""

    name = "server"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            names = sorted(read_user().servers)
        except ConfigError:
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


SERVER = flag(
    "--server",
    topic="servers",
    type=ServerName(),
    metavar="NAME",
    help="Attach to [servers.NAME] of config.toml.",
)
DIALECT = flag(
    "--dialect",
    topic="servers",
    type=click.Choice(DIALECTS),
    help="How the server tells of its rounds, instead of asking it.",
)


def typed_flags(topics: Collection[str] | None = None) -> list[str]:
    """The parameters of this command that were typed: not defaults, nor from a file or the environment.
    ``topics``: only flags of these."""
    context = click.get_current_context()
    about = {option.name: option.topic for option in context.command.params if isinstance(option, Flag)}
    wanted = [name for name in context.params if topics is None or about.get(name) in topics]
    return [name for name in wanted if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def _no_server(_context: click.Context, _parameter: click.Parameter, model: str | None) -> str | None:
    """Raise :class:`Problem` when ``model`` names a server where the engine of this program is needed."""
    if is_address(model):
        raise Problem(
            f"{model} is a server, and this command needs the engine of this program.",
            "Ask a server something, or let it race: dflash-chat race URL --against URL",
        )
    return model


def pair_flags(command: Body) -> Body:
    """MODEL, ``--draft``, ``--device``, ``--weights`` and ``--offline``, which the command is given as ``options``."""

    @wraps(command)
    def run(*args: Any, model: str | None, draft: str | None, device: str, weights: WeightChoice, offline: bool,
            **rest: Any) -> int:  # fmt: skip
        return command(*args, options=EngineOptions(model, draft, device, offline=offline, weights=weights), **rest)

    argument = click.argument("model", required=False, type=ModelName(), callback=_no_server, shell_complete=A_MODEL)
    return argument(engine_flags(run))


def engine_flags(command: Body) -> Body:
    """``--draft``, ``--device``, ``--weights`` and ``--offline``."""
    draft = click.option(
        "--draft", type=ModelName(), metavar="MODEL", help="Another drafter than its own; 'mtp', 'none'."
    )
    return draft(DEVICE(WEIGHTS(OFFLINE(command))))


@contextmanager
def loaded_pair(options: EngineOptions) -> Iterator[tuple[Runner, ProgressLine]]:
    """A pair on this thread, and its progress line on stderr. :class:`UsageFailure` without a drafter."""
    from engine.runner import Runner

    status = ProgressLine()
    try:
        runner = Runner.load(options, status.show, lambda: False)
        assert runner is not None, "nothing cancels this"
        if runner.decoder.drafter is None:
            raise UsageFailure("There is no drafter to measure.", "Name one with --draft.")
        yield runner, status
    finally:
        status.finish()
