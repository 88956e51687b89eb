"""``dflash-chat pull MODEL``: a model and its drafter from the hub, under one progress, to be resumed at any time."""

from __future__ import annotations

from contextlib import closing
from typing import get_args

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.progress import describe_bytes
from engine.commands import AUTO, NO_DRAFTER, WeightChoice, WeightFormat
from engine.events import LoadProgress
from engine.hub.fetching import Fetching
from engine.hub.pairs import KNOWN_PAIRS, copy_in, find_pair
from engine.hub.sizes import size_of
from engine.tools.gpus import first_gpu
from engine.tools.suggestion import CONTEXT

from ..flags.completing import among, published
from ..flags.values import ModelName
from ..headless.status import LoggedProgress
from ..terminal.saying import remark, say_path


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("model", type=ModelName(), shell_complete=among(published))
@click.option(
    "--draft",
    type=ModelName(),
    metavar="MODEL",
    help="Another drafter than MODEL's own; 'mtp' its assistant, 'none' none.",
)
@click.option(
    "--weights",
    type=click.Choice([AUTO, *get_args(WeightFormat)]),
    default=AUTO,
    help="Fetch the published copy in this format; auto: what fits on the GPU here, or MODEL as named.",
)
def pull(model: str, draft: str | None, weights: WeightChoice) -> int:
    """Fetch MODEL and its drafter from the hub.

    The folders are printed when both are whole. Ctrl+C stops; run it again to go on where it stopped. MODEL may be
    of any family that the engine runs; dflash-chat help models lists those whose drafter is known.
    """
    progress = _PullProgress()
    model = _copy_of(model, weights)
    fetching = Fetching(refresh=True, progress=progress.fetched)
    try:
        with closing(progress):
            folders = find_pair(model, draft, fetching)
    except KeyboardInterrupt:
        where = f" at {progress.last}" if progress.last else ""
        remark(f"Stopped{where}. Nothing was deleted; run it again to go on.")
        return ExitCode.INTERRUPTED
    say_path(folders.target)
    if folders.drafter is not None:
        say_path(folders.drafter)
    elif draft != NO_DRAFTER:
        known = ", ".join(pair.target for pair in KNOWN_PAIRS)
        remark(f"Without a drafter: there is none for this model. Models with one: {known}")
    return ExitCode.OK


def _copy_of(model: str, weights: WeightChoice) -> str:
    """The repository to fetch for a model, told on stderr where it is another one."""
    gpu, size = first_gpu() if weights == AUTO else None, size_of(model)
    wanted = (
        weights if weights != AUTO else None if gpu is None or size is None else size.best_format(CONTEXT, gpu.memory)
    )
    if wanted in (None, "bf16") or size is None:
        return model
    copy = copy_in(wanted, model)
    if copy is None:
        remark(f"No copy of {model} in {wanted} is known: it is packed while it loads.")
        return model
    remark(f"{copy}: {model} in {wanted}, {size.weights[wanted] / 1e9:.0f} GB.")
    return copy


class _PullProgress(LoggedProgress):
    last = ""
    """How much of the file had come at the last look, in words."""

    def fetched(self, done: int, total: int, bytes_per_second: float) -> None:
        self.last = describe_bytes(done, total)
        self.show(LoadProgress("downloading", done, total, "bytes", bytes_per_second))
