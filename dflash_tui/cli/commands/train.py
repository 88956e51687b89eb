"""``dflash-chat train TARGET -o FOLDER``: a DFlash drafter for a target, made here."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.sources import require_folder
from engine.commands import NO_DRAFTER
from engine.events import LoadProgress
from engine.hub.fetching import Fetching
from engine.hub.pairs import find_pair

from ..flags.values import Amount
from ..headless.status import LoggedProgress
from ..terminal.saying import remark, say

if TYPE_CHECKING:
    from engine.lab.training.pipeline import PhaseName, TrainingPlan

WORDS: dict[PhaseName, str] = {
    "prompts": "inventing prompts",
    "answers": "recording answers",
    "drafter": "training",
    "report": "measuring",
}

AT_LEAST_ONE = click.IntRange(min=1)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("target")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER")
@click.option("--prompts", "prompt_file", type=FILE, help="One a line, text or JSON; default: the target invents them.")
@click.option("--held-out", type=FILE, help="Prompts to measure with, never trained on; default: 100 of the others.")
@click.option(
    "--from", "begun", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="FOLDER",
    help="A drafter of the same shape, to train further.",
)  # fmt: skip
@click.option(
    "--invent", "prompts", type=AT_LEAST_ONE, default=40_000, show_default=True, help="Prompts, where no file has any."
)
@click.option(
    "--tokens",
    "answer_tokens",
    type=click.IntRange(min=2),
    default=512,
    show_default=True,
    help="Of an answer, at most.",
)
@click.option("--batch", type=AT_LEAST_ONE, default=2048, show_default=True, help="Texts written together.")
@click.option("--layers", type=AT_LEAST_ONE, default=5, show_default=True, help="Of the drafter.")
@click.option("--size", type=Amount(), metavar="MB", help="What its weights may take.")
@click.option("--block-size", type=click.IntRange(2, 64), default=16, show_default=True)
@click.option("--steps", type=AT_LEAST_ONE, default=2000, show_default=True, help="Updates of its weights.")
@click.option("--minutes", type=Amount(), help="Of work: fewer prompts and steps then.")
@click.option("--rows", type=AT_LEAST_ONE, default=32, show_default=True, help="Rows of text in each.")
@click.option(
    "--row-tokens", "row_length", type=click.IntRange(min=32), default=2048, show_default=True, help="In a row."
)
@click.option("--anchors", type=AT_LEAST_ONE, default=128, show_default=True, help="Blocks drafted in a row.")
@click.option("--decay", type=Amount(), default=7.0, show_default=True,
    help="Positions over which the loss of a block falls; less where drafts are short.",
)  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto")
@click.option("--offline", is_flag=True, help="Never ask the hub.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def train(
    target: str,
    output: Path,
    prompt_file: Path | None,
    held_out: Path | None,
    begun: Path | None,
    as_json: bool,
    device: str,
    offline: bool,
    **numbers: Any,
) -> int:
    """Make a DFlash drafter for TARGET, a model's name or folder.

    The target answers prompts, the drafter learns to guess those answers from the target's hidden states, and a
    report says how well it guesses on prompts that it has never seen. Ctrl+C stops; the same command goes on where it
    stopped. The drafter lies in FOLDER: dflash-chat TARGET --draft FOLDER.
    """
    require_folder()
    from engine.lab.training.pipeline import Pipeline
    from engine.loading.checkpoint import pick_device

    folders = find_pair(target, NO_DRAFTER, Fetching(offline=offline))
    progress = _TrainingProgress()
    try:
        pipeline = Pipeline(
            folders.target,
            folders.name,
            output,
            _plan(**numbers),
            pick_device(device),
            progress.reached,
            prompt_file,
            held_out,
            begun,
        )
        report = pipeline.run()
    except KeyboardInterrupt:
        remark(f"\nStopped{progress.last}. The same command goes on from there.")
        return ExitCode.INTERRUPTED
    finally:
        progress.close()
    say(json.dumps(report, indent=2) if as_json else "\n".join(_lines(report, output)))
    return ExitCode.OK


def _plan(layers: int, size: float | None, block_size: int, **numbers: Any) -> TrainingPlan:
    """The plan by the command's options; ``size``: megabytes of the drafter, ``numbers``: the plan's other fields."""
    from engine.lab.training.pipeline import TrainingPlan
    from engine.lab.training.shape import DrafterShape

    shape = DrafterShape(layers=layers, nbytes=None if size is None else int(size * 1e6), block_size=block_size)
    return TrainingPlan(shape=shape, **numbers)


def _lines(report: dict[str, Any], folder: Path) -> list[str]:
    """The report as lines: a row for each domain says how often the drafts at each position were accepted."""
    acceptance = report["acceptance"]
    positions = len(next(iter(acceptance.values()))["by_position"])
    shown = [position for position in (1, 2, 4, 8, 15) if position <= positions]
    lines = [
        f"{'held-out prompts':18}{'tokens a round':>15}  accepted at position {' '.join(f'{p:>5}' for p in shown)}"
    ]
    for domain, figures in acceptance.items():
        shares = " ".join(f"{figures['by_position'][position - 1]:5.0%}" for position in shown)
        lines.append(f"{domain:18}{figures['tau']:15.2f}  {'':20} {shares}")
    held_out = report["held_out"]
    lines.append(f"{held_out['same_text']} of {held_out['prompts']} texts are the same without it, in batches.")
    lines.append(f"{folder}: {report['parameters'] / 1e6:.1f} million parameters.")
    return lines


class _TrainingProgress(LoggedProgress):
    """The progress of a training, with the time that a phase still takes."""

    _phase = ""
    _began = (0.0, 0)
    last = ""
    """How far the training was at the last look, in words."""

    def reached(self, phase: PhaseName, done: int, total: int, remark: str) -> None:
        now = time.monotonic()
        if phase != self._phase:
            self._phase, self._began = phase, (now, done)
        words = ", ".join(word for word in (WORDS[phase], remark, self._left(now, done, total)) if word)
        self.last = f" at {WORDS[phase]}, {done} of {total}"
        self.show(LoadProgress(words, done, total))

    def _left(self, now: float, done: int, total: int) -> str:
        """The time that a phase still takes, in words, by what it has done since it began here."""
        since, first = self._began
        if done <= first or done >= total:
            return ""
        seconds = (now - since) / (done - first) * (total - done)
        return f"about {seconds:.0f} s left" if seconds < 120 else f"about {seconds / 60:.0f} min left"
