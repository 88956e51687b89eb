"""The pair that a command runs: the flags that name it, and loading it where nobody talks to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, get_args

import click

from engine.commands import AUTO, EngineOptions, WeightFormat
from engine.errors import UsageFailure

from .help import flag
from .status import StatusLine

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


def pair_flags(command: Body) -> Body:
    """MODEL, ``--draft``, ``--device``, ``--weights`` and ``--offline``, for a command that measures a pair."""
    model = click.argument("model", required=False)
    draft = click.option("--draft", metavar="MODEL", help="Another drafter than MODEL's own.")
    return model(draft(DEVICE(WEIGHTS(OFFLINE(command)))))


@contextmanager
def loaded_pair(options: EngineOptions) -> Iterator[tuple[Runner, StatusLine]]:
    """A pair on this thread, and its progress line on stderr. :class:`UsageFailure` without a drafter."""
    from engine.runner import Runner

    status = StatusLine()
    try:
        runner = Runner.load(options, status.show, lambda: False)
        assert runner is not None, "nothing cancels this"
        if runner.decoder.drafter is None:
            raise UsageFailure("There is no drafter to measure.", "Name one with --draft.")
        yield runner, status
    finally:
        status.finish()
