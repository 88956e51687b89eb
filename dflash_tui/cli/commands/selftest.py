"""``dflash-chat selftest``: whether a target and its drafter work together, in figures and in words."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.text.counted import counted
from dflash_tui.sources import require_folder
from engine.commands import EngineOptions
from engine.errors import EngineFailure
from engine.hub.fetching import Fetching
from engine.hub.pairs import find_pair

from ..flags.pair import loaded_pair, pair_flags
from ..flags.values import Amount
from ..terminal.saying import say

if TYPE_CHECKING:
    from engine.lab.judging.selftest import SelfTest

BAR = 30


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@pair_flags
@click.option("--tokens", type=click.IntRange(min=16), default=128, show_default=True, help="Per answer, at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--noise-embed-scale",
    type=Amount(),
    metavar="X",
    help="Scale of the embeddings that the drafter reads, to compare.",
)
def selftest(
    options: EngineOptions,
    tokens: int,
    as_json: bool,
    noise_embed_scale: float | None,
) -> int:
    """Let the target write a few answers, draft behind every token of them, and count what was right.

    Shows acceptance by position, what the drafter's confidence is worth, and whether speculation changed a text. The
    exit code is 0 for a sound pair and 1 for one that is wired wrongly.
    """
    require_folder()
    pair = replace(options, noise_embed_scale=noise_embed_scale, max_context=4096, time_rounds=False)
    result = _run(pair, tokens)
    if as_json:
        say(json.dumps(_as_object(result), indent=2))
    else:
        say("\n".join(_lines(result)))
    return ExitCode.OK if result.healthy else ExitCode.GENERATION


def _run(options: EngineOptions, tokens: int) -> SelfTest:
    result = _test(options, tokens, "testing, answers done")
    if result.weights == "bf16":
        return result
    # What is in bf16 already is compared; nothing is fetched for that, and what is packed stays what it stands for.
    plain = replace(options, weights="bf16", offline=True)
    try:
        if _is_packed(plain):
            return result
        length = _test(plain, tokens, "the same in bf16, answers done").acceptance_length
    except EngineFailure:
        return result
    return replace(result, in_bf16=length)


def _test(options: EngineOptions, tokens: int, what: str) -> SelfTest:
    from engine.lab.judging.selftest import self_test

    with loaded_pair(options) as (runner, status):
        result = self_test(runner.decoder, runner.tokenizer, tokens, progress=status.counting(what))
        return replace(result, reported=runner.reported)


def _is_packed(options: EngineOptions) -> bool:
    """Whether the target's files hold packed weights; ``WeightsFailure`` where they are not on this machine."""
    from engine.loading.stored_format import stored_format

    folders = find_pair(options.target, options.drafter, Fetching(offline=True), "bf16")
    return stored_format(folders.target).weights != "bf16"


def _as_object(result: SelfTest) -> dict[str, Any]:
    return {
        **asdict(result),
        "positions": [position._asdict() for position in result.positions],
        "bins": [each._asdict() for each in result.bins],
        "divergences": [divergence._asdict() for divergence in result.divergences],
        "reported": None if result.reported is None else result.reported._asdict(),
        "better": None if result.better is None else result.better._asdict(),
        "first_rate": result.first_rate,
        "acceptance_length": result.acceptance_length,
        "healthy": result.healthy,
        "verdict": result.verdict,
    }


def _lines(result: SelfTest) -> list[str]:
    positions = [
        f"{index:>8} {_bar(right / reached if reached else 0)} {_share(right, reached):>5}  of {reached}"
        for index, (reached, right) in enumerate(result.positions, start=1)
    ]
    bins = [
        f"{index / 10:>4.1f}-{(index + 1) / 10:.1f} {_bar(each.observed)} "
        + (f"{each.observed:>5.0%}  predicted {each.predicted:.0%}, of {each.reached}" if each.reached else "    -")
        for index, each in enumerate(result.bins)
    ]
    divergences = [
        f"  {divergence.prompt!r}: token {divergence.token}, margin {divergence.margin:.3g}"
        for divergence in result.divergences
    ]
    return [
        f"Drafts behind {counted(result.num_tokens, 'token')} of {counted(result.num_answers, 'answer')}.",
        "", "Right, by position in the draft, where all before it were:", *positions,
        "", "Right, by the drafter's confidence:", *bins,
        *(["", "Answers that differ with speculation:", *divergences] if divergences else []),
        "", result.verdict,
    ]  # fmt: skip


def _bar(share: float) -> str:
    filled = round(share * BAR)
    return "█" * filled + "·" * (BAR - filled)


def _share(right: int, reached: int) -> str:
    return f"{right / reached:.0%}" if reached else "-"
