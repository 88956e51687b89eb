"""``python -m tests.engine.policy_figures``: what choosing the width yields at the costs recorded on a GPU.

Beside what is asked of it. Simulated: recorded and scripted drafts, played at those costs (``engine.tuning.play``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from engine.bench.policy import scripted_drafts
from engine.tuning.files import Recording, load_recordings
from engine.tuning.play import Anchor, Played, play, play_oracle
from engine.width import Auto, CostTable, Fixed, Policy
from tests.engine.recorded_costs import recorded_tables
from tests.engine.test_bench_policy import LENGTHS, WANTED
from tests.engine.test_width import best_fixed_size, drafts, wrong

SIZES = range(1, 17)
LONG = 32_000
"""Tokens that stand before the prompts of long texts."""


def tok_s(policy: Callable[[], Policy], answers: Sequence[Recording], table: CostTable) -> float:
    return _rate([play(policy(), each.anchors, table, each.prompt_length) for each in answers])


def _rate(played: Sequence[Played]) -> float:
    return 1e3 * sum(each.tokens for each in played) / sum(each.milliseconds for each in played)


def against_fixed(answers: Sequence[Recording], table: CostTable) -> tuple[float, float, float]:
    """Times the best fixed width, times a fixed 16, and what the oracle is of the latter."""
    fixed = [tok_s(lambda size=size: Fixed(size), answers, table) for size in SIZES]  # type: ignore[misc]
    auto = tok_s(lambda: Auto(table), answers, table)
    known = _rate([play_oracle(each.anchors, table, each.prompt_length) for each in answers])
    return auto / max(fixed), auto / fixed[-1], known / fixed[-1]


def adversarial(table: CostTable, confidence: float) -> float:
    """Times plain decoding, with 2000 drafts that are never right."""
    anchors = wrong(2000, confidence)
    return play(Fixed(1), anchors, table).milliseconds / play(Auto(table), anchors, table).milliseconds


def collapse(table: CostTable, confidence: float) -> float:
    """Times somebody who knew which width is best for which part: good drafts, wrong ones, good ones again."""
    best = best_fixed_size(drafts(20_000, 0.9, seed=7), table)
    known = auto = 0.0
    for seed in range(10):
        parts: list[tuple[int, list[Anchor]]] = [
            (best, drafts(600, 0.9, seed)),
            (1, wrong(560 + 9 * seed, confidence)),
            (best, drafts(600, 0.9, seed + 100)),
        ]
        known += sum(play(Fixed(size), part, table).milliseconds for size, part in parts)
        auto += play(Auto(table), [anchor for _, part in parts for anchor in part], table).milliseconds
    return known / auto


def figures(name: str, table: CostTable) -> dict[str, str]:
    """By what is asked. Ratios are those of the worst cell."""

    def key(each: Recording) -> tuple[str, float]:
        return each.domain, each.temperature

    recordings = sorted(load_recordings(Path(__file__).with_name("drafts.xz")), key=key)
    cells = [
        (domain, against_fixed([replace(each, prompt_length=each.prompt_length + ahead) for each in answers], table))
        for (domain, _), group in groupby(recordings, key)
        for answers in [list(group)]
        for ahead in (0, LONG)
    ]
    talk = [found for domain, found in cells if domain in ("chat", "explain")]
    whole = min(talk, key=lambda found: found[1])
    found = {
        "auto / best fixed width, any cell (0.98)": f"{min(best for _, (best, _, _) in cells):.3f}",
        "auto / fixed 16, chat and explain (1.10)": f"{whole[1]:.2f}",
        "oracle / fixed 16, the same cells": f"{min(k for _, _, k in talk):.2f} to {max(k for _, _, k in talk):.2f}",
        "never right / plain (0.97)": f"{min(adversarial(table, each) for each in (0.1, 0.5, 0.9, 0.99, 1.0)):.3f}",
        "collapse / knowing (0.95)": f"{min(collapse(table, each) for each in (0.2, 0.9, 0.99)):.3f}",
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
