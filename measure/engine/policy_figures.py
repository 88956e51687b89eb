"""``python -m measure.engine.policy_figures``: what choosing the width yields at the costs recorded on a GPU.

Beside what is asked of it. Simulated: recorded and scripted drafts, played at those costs (``engine.tuning.play``). On
dense models ``auto`` verifies trees, at costs of their own. Fixed widths and the oracle take chains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from engine.bench.policy import scripted_drafts
from engine.speculation.costs import CostTable
from engine.speculation.verify_width import Auto, Fixed, Policy
from engine.tuning.files import Recording, load_recordings
from engine.tuning.play import Played, play, play_oracle
from measure.engine.played_auto import chains, never_right, play_auto, play_best, scattered
from measure.engine.recorded_costs import LONG, recorded_tables
from tests.engine.bench.test_bench_policy import LENGTHS, WANTED

SIZES = range(1, 17)
AHEAD = (0, LONG)
SURE = (0.1, 0.5, 0.9, 0.99, 1.0)
"""A drafter's confidence in drafts that are never right."""


def tok_s(policy: Callable[[], Policy], answers: Sequence[Recording], table: CostTable) -> float:
    return _rate([play(policy(), each.anchors, table, each.prompt_length) for each in answers])


def _rate(played: Sequence[Played]) -> float:
    return 1e3 * sum(each.tokens for each in played) / sum(each.milliseconds for each in played)


def behind(ahead: int, recording: Recording) -> Recording:
    """The same answer, so many tokens further on."""
    return replace(recording, prompt_length=recording.prompt_length + ahead)


def against_fixed(answers: Sequence[Recording], name: str, table: CostTable) -> tuple[float, float, float]:
    """Times the best fixed width, times a fixed 16, and what the oracle is of the latter."""
    fixed = [tok_s(lambda size=size: Fixed(size), answers, table) for size in SIZES]  # type: ignore[misc]
    auto = _rate([play_auto(name, table, each.blocks, each.prompt_length) for each in answers])
    known = _rate([play_oracle(each.anchors, table, each.prompt_length) for each in answers])
    return auto / max(fixed), auto / fixed[-1], known / fixed[-1]


def adversarial(name: str, table: CostTable, confidence: float, ahead: int = 0) -> float:
    """Times plain decoding, with 2000 drafts that are never right."""
    blocks = never_right(2000, confidence)
    plain = play(Fixed(1), chains(blocks), table, ahead)
    return plain.milliseconds / play_auto(name, table, blocks, ahead).milliseconds


def collapse(name: str, table: CostTable, confidence: float, ahead: int = 0) -> float:
    """Times somebody who knew which way is best for which part: good drafts, wrong ones, good ones again."""
    sample = chains(scattered(20_000, 0.9, seed=7))
    best = min(SIZES, key=lambda size: play(Fixed(size), sample, table, ahead).milliseconds)
    known = auto = 0.0
    for seed in range(10):
        good, again = scattered(600, 0.9, seed), scattered(600, 0.9, seed + 100)
        bad = never_right(560 + 9 * seed, confidence)
        for part, size in ((good, best), (bad, 1), (again, best)):
            known += play_best(name, table, part, size, ahead)
        auto += play_auto(name, table, [*good, *bad, *again], ahead).milliseconds
    return known / auto


def figures(name: str, table: CostTable) -> dict[str, str]:
    """By what is asked. Ratios are those of the worst cell, with and without ``LONG`` tokens ahead."""

    def key(each: Recording) -> tuple[str, float]:
        return each.domain, each.temperature

    recordings = sorted(load_recordings(Path(__file__).with_name("drafts.xz")), key=key)
    cells = [
        (domain, against_fixed([behind(ahead, each) for each in answers], name, table))
        for (domain, _), group in groupby(recordings, key)
        for answers in [list(group)]
        for ahead in AHEAD
    ]
    wrong = [adversarial(name, table, sure, ahead) for sure in SURE for ahead in AHEAD]
    lost = [collapse(name, table, sure, ahead) for sure in (0.2, 0.9, 0.99) for ahead in AHEAD]
    talk = [found for domain, found in cells if domain in ("chat", "explain")]
    whole = min(talk, key=lambda found: found[1])
    found = {
        "auto / best fixed width, any cell (0.98)": f"{min(best for _, (best, _, _) in cells):.3f}",
        "auto / fixed 16, chat and explain (1.10)": f"{whole[1]:.2f}",
        "oracle / fixed 16, the same cells": f"{min(k for _, _, k in talk):.2f} to {max(k for _, _, k in talk):.2f}",
        "never right / plain (0.97)": f"{min(wrong):.3f}",
        "collapse / knowing (0.95)": f"{min(lost):.3f}",
    }
    for task, length in LENGTHS.items():
        rate = play(Auto(table), scripted_drafts(length, 20_000), table).tok_s
        found[f"tok/s, {task} ({WANTED[task]})"] = f"{rate:.0f}" if name.startswith("26B") else "-"
    return found


def main() -> None:
    columns = {name: figures(name, table) for name, table in recorded_tables().items()}
    print("| asked |", *(f"{name} |" for name in columns))
    print("|--|" + "--|" * len(columns))
    for row in next(iter(columns.values())):
        print(f"| {row} |", *(f"{found[row]} |" for found in columns.values()))


if __name__ == "__main__":
    main()
