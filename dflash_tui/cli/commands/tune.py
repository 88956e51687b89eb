"""``dflash-chat tune``: which block size would have been best on this machine, and what choosing every round yields; or
how kernels should cut their work on this GPU."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.sources import require_folder
from engine.commands import EngineOptions
from engine.errors import UsageFailure

from ..flags.pair import loaded_pair, pair_flags

if TYPE_CHECKING:
    from engine.lab.judging.sweep import PolicyRate, Sweep
    from engine.loading.choose_rounds import TimedTiles
    from engine.measured.tiles import Timed
    from engine.speculation.costs import CostTable

TEMPERATURES = (0.0, 0.7)
FEW_PROMPTS = 8
SHOWN_ROWS = (1, 2, 4, 8, 16)
HOST_ROUNDS = "They need an NVIDIA GPU from Ampere on and Triton: dflash-chat doctor says what is here."


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@pair_flags
@click.option("-p", "--prompt", "prompts", multiple=True, metavar="TEXT", help="Instead of the usual five; repeatable.")
@click.option("--tokens", type=click.IntRange(min=16), default=256, show_default=True, help="Per answer, at most.")
@click.option("--kernels", is_flag=True, help="Choose the kernels' tiles for this GPU by timing, for a minute at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def tune(
    options: EngineOptions,
    prompts: tuple[str, ...],
    tokens: int,
    kernels: bool,
    as_json: bool,
) -> int:
    """Compare block sizes on this machine.

    Records what the drafter drafts behind every token of a few answers, times passes of every width, and works out
    what each block size would have yielded, and what choosing anew every round does.

    With --kernels it times the kernels of a round under other tiles instead. A chat does so by itself when it first
    starts on a GPU that nobody has measured; this does it again.
    """
    require_folder()
    options = replace(options, max_context=4096)
    if kernels:
        tiles = _time_kernels(options)
        print(json.dumps(_kernels_object(tiles), indent=2) if as_json else "\n".join(_kernel_lines(tiles)))
        return ExitCode.OK
    found, answers, timed = _run(options, prompts, tokens)
    print(json.dumps(_as_object(found), indent=2) if as_json else "\n".join([timed, "", *_lines(found, answers)]))
    return ExitCode.OK


def _run(options: EngineOptions, prompts: tuple[str, ...], tokens: int) -> tuple[Sweep, int, str]:
    """What each policy would have yielded, on how many answers, and what rounds cost here."""
    from engine.lab.judging.selftest import PROMPTS
    from engine.lab.judging.sweep import record_answers, sweep

    with loaded_pair(options) as (runner, status):
        runner.learn_costs()
        costs = runner.costs
        if costs is None:
            raise UsageFailure("What rounds cost on this device is not known.", "dflash-chat bench measures it.")
        progress = status.counting("recording, answers done")
        asked = prompts or PROMPTS
        recordings = record_answers(runner.decoder, runner.tokenizer, asked, TEMPERATURES, tokens, progress)
        return sweep(recordings, costs), len(recordings), _timed(costs, runner.costs_seconds)


def _time_kernels(options: EngineOptions) -> TimedTiles:
    """Times tiles anew, and uses and keeps what is better."""
    with loaded_pair(replace(options, time_rounds=False)) as (runner, status):
        if not runner.runs_on_device:
            raise UsageFailure("No kernels run the rounds of this pair here: there is nothing to time.", HOST_ROUNDS)
        return runner.time_tiles(status.show)


def _kernels_object(found: TimedTiles) -> dict[str, Any]:
    return {
        "seconds": found.seconds,
        "complete": found.complete,
        "kept": found.kept,
        "kernels": [
            {
                "pass": who,
                "kernel": each.name,
                "before": {"us": each.before_us, **asdict(each.before)},
                "now": {"us": each.now_us, **asdict(each.now)},
                "launches": each.launches,
                "tried": each.tried,
            }
            for who, each in _by_pass(found)
        ],
    }


def _kernel_lines(found: TimedTiles) -> list[str]:
    lines = [f"{'':24}{'us before':>10}{'us now':>9}   what changed"]
    for who, each in _by_pass(found):
        old, new = asdict(each.before), asdict(each.now)
        changes = ", ".join(f"{part} {old[part]} to {new[part]}" for part in new if new[part] != old[part])
        name = f"{who} {each.name.replace('_', ' ')}"
        lines.append(f"{name:24}{each.before_us:>10.2f}{each.now_us:>9.2f}   {changes or '-'}")
    of_target = [each for who, each in _by_pass(found) if who == "target" and not each.name.endswith("_alone")]
    before = sum(each.before_us * each.launches for each in of_target) / 1e3
    now = sum(each.now_us * each.launches for each in of_target) / 1e3
    kept = "kept for the next start" if found.kept else "not kept: the program knows this GPU's best ones"
    return [*lines, "", f"Products of a pass of 16 rows: {before:.2f} ms before, {now:.2f} ms now; {kept}."]


def _by_pass(found: TimedTiles) -> list[tuple[str, Timed]]:
    who = ["target"] * found.of_target + ["drafter"] * (len(found.timed) - found.of_target)
    return list(zip(who, found.timed, strict=True))


def _timed(table: CostTable, seconds: float) -> str:
    context, costs = table.contexts[0], table.costs[0]
    passes = ", ".join(f"{costs.verify[rows - 1]:.2f} of {rows}" for rows in SHOWN_ROWS)
    known = f"timed in {seconds:.2f} s" if seconds else "known from an earlier start"
    return f"milliseconds at context {context}: draft {costs.draft:.2f}, passes {passes} rows ({known})"


def _as_object(found: Sweep) -> dict[str, Any]:
    return {
        "fixed": {str(size): each._asdict() for size, each in found.fixed.items()},
        "auto": found.auto._asdict(),
        "oracle": found.oracle._asdict(),
        "best_block_size": found.best_size,
    }


def _lines(found: Sweep, answers: int) -> list[str]:
    rows = [_row("plain" if size == 1 else f"block {size}", each) for size, each in found.fixed.items()]
    best = found.fixed[found.best_size]
    few = answers < FEW_PROMPTS * len(TEMPERATURES)
    each_at = " and ".join(f"{temperature:g}" for temperature in TEMPERATURES)
    more = f"From {answers} answers, each prompt at temperature {each_at}: eight prompts of your own would say more."
    return [
        f"{'':10}{'tok/s':>8}   95% of such sets of answers",
        *rows,
        _row("auto", found.auto),
        _row("oracle", found.oracle),
        "",
        f"Choosing every round yields {found.auto.tok_s / best.tok_s:.2f} times the best fixed size"
        f" ({'plain decoding' if found.best_size == 1 else f'block {found.best_size}'}),"
        f" and {found.auto.tok_s / found.oracle.tok_s:.2f} times what knowing every draft's fate would.",
        *([more] if few else []),
    ]


def _row(name: str, each: PolicyRate) -> str:
    return f"{name:10}{each.tok_s:>8.0f}   {each.low:.0f} to {each.high:.0f}"
