"""``dflash-chat tune``: which block size would have been best on this machine, and what choosing every round yields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from dflash_tui.core.exit_codes import ExitCode, exit_code_for
from engine.commands import EngineOptions
from engine.errors import EngineFailure, UsageFailure
from engine.events import LoadProgress

from .problems import Problem
from .status import StatusLine

if TYPE_CHECKING:
    from engine.tuning.rates import Rate
    from engine.tuning.sweep import Sweep

TEMPERATURES = (0.0, 0.7)
FEW_PROMPTS = 8


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("model", required=False)
@click.option("-p", "--prompt", "prompts", multiple=True, metavar="TEXT", help="Ask this, instead of the usual five.")
@click.option("--draft", metavar="MODEL", help="Another drafter than MODEL's own.")
@click.option("--tokens", type=click.IntRange(min=16), default=256, show_default=True, help="Per answer, at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where to compute.")
@click.option("--offline", is_flag=True, help="Never ask the hub.")
def tune(
    model: str | None,
    prompts: tuple[str, ...],
    draft: str | None,
    tokens: int,
    as_json: bool,
    device: str,
    offline: bool,
) -> int:
    """Compare block sizes on this machine.

    Records what the drafter drafts behind every token of a few answers, times passes of every width, and works out
    what each block size would have yielded, and what choosing anew every round does.
    """
    options = EngineOptions(model, draft, device=device, offline=offline, max_context=4096)
    try:
        found, answers = _run(options, prompts, tokens)
    except EngineFailure as failure:
        raise Problem(str(failure), failure.hint, exit_code_for(failure.kind)) from failure
    print(json.dumps(_as_object(found), indent=2) if as_json else "\n".join(_lines(found, answers)))
    return ExitCode.OK


def _run(options: EngineOptions, prompts: tuple[str, ...], tokens: int) -> tuple[Sweep, int]:
    from engine.runner import Runner
    from engine.selftest import PROMPTS
    from engine.tuning.sweep import record_answers, sweep

    status = StatusLine()
    runner = Runner.load(options, status.show, lambda: False)
    assert runner is not None, "nothing cancels this"
    if runner.decoder.drafter is None:
        raise UsageFailure("There is no drafter to tune.", "Name one with --draft.")
    if runner.costs is None:
        raise UsageFailure("What rounds cost on this device is not known.", "dflash-chat bench measures it.")

    def progress(done: int, total: int) -> None:
        status.show(LoadProgress("recording, answers done", done, total))

    recordings = record_answers(runner.decoder, runner.tokenizer, prompts or PROMPTS, TEMPERATURES, tokens, progress)
    status.finish()
    return sweep(recordings, runner.costs), len(recordings)


def _as_object(found: Sweep) -> dict[str, Any]:
    return {
        "fixed": {str(size): each._asdict() for size, each in found.fixed.items()},
        "auto": found.auto._asdict(),
        "best_block_size": found.best_size,
    }


def _lines(found: Sweep, answers: int) -> list[str]:
    rows = [_row("plain" if size == 1 else f"block {size}", each) for size, each in found.fixed.items()]
    best = found.fixed[found.best_size]
    few = answers < FEW_PROMPTS * len(TEMPERATURES)
    return [
        f"{'':10}{'tok/s':>8}   95 % of such sets of answers",
        *rows,
        _row("auto", found.auto),
        "",
        f"Choosing every round yields {found.auto.tok_s / best.tok_s:.2f} times the best fixed size"
        f" ({'plain decoding' if found.best_size == 1 else f'block {found.best_size}'}).",
        *([f"From {answers} answers: with eight prompts of your own (-p) it would say more."] if few else []),
    ]


def _row(name: str, each: Rate) -> str:
    return f"{name:10}{each.tok_s:>8.0f}   {each.low:.0f} to {each.high:.0f}"
