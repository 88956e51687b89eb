"""``python -m measure.engine.draft_trees``: what trees of drafts would yield instead of chains, at recorded costs.

The bundled pair answers held-out questions, and its drafter's best four choices for every position of a block are kept
behind every token. Chains and trees are played over them, round by round; ``oracle`` knows beforehand which chains are
right. Trees are ``engine.speculation.trees``.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from engine.speculation.costs import CostTable
from engine.speculation.trees import ROWS
from engine.speculation.verify_width import Auto, Fixed
from engine.tuning.files import Recording
from engine.tuning.play import Played, play, play_oracle
from engine.tuning.sweep import RESAMPLES
from measure.engine.played_auto import TREES
from measure.engine.record_drafts import DOMAINS, record_all
from measure.engine.recorded_costs import LONG, recorded_tables


class Answer(NamedTuple):
    question: int
    """Answers to one question are alike."""
    recording: Recording

    @property
    def cell(self) -> tuple[str, float]:
        return self.recording.domain, self.recording.temperature


Player = Callable[[Recording, CostTable, int], Played]
"""Of an answer, at costs, behind a prompt of so many tokens."""
PLAYERS: dict[str, Player] = {
    "fixed 16": lambda answer, table, length: play(Fixed(ROWS), answer.anchors, table, length),
    "auto": lambda answer, table, length: play(Auto(table), answer.anchors, table, length),
    "oracle": lambda answer, table, length: play_oracle(answer.anchors, table, length),
    "auto trees": lambda answer, table, length: play(Auto(table), answer.blocks, table, length),
}


def rate(played: Iterable[Played]) -> float:
    """Tokens per second."""
    tokens, milliseconds = map(sum, zip(*((each.tokens, each.milliseconds) for each in played), strict=True))
    return 1e3 * tokens / milliseconds


def interval(answers: Sequence[Answer], ours: Sequence[Played], theirs: Sequence[Played]) -> str:
    """Times theirs, with the bounds of its 95 % interval: a bootstrap over questions."""
    places = sorted(range(len(answers)), key=lambda place: answers[place].question)
    questions = [list(group) for _, group in groupby(places, lambda place: answers[place].question)]

    def ratio(drawn: Sequence[list[int]]) -> float:
        chosen = [place for question in drawn for place in question]
        return rate(ours[place] for place in chosen) / rate(theirs[place] for place in chosen)

    rng = random.Random(0)
    drawn = sorted(ratio(rng.choices(questions, k=len(questions))) for _ in range(RESAMPLES))
    return f"{ratio(questions):.3f} [{drawn[int(0.025 * RESAMPLES)]:.3f}, {drawn[int(0.975 * RESAMPLES)]:.3f}]"


def row(cell: tuple[str, float], answers: Sequence[Answer], table: CostTable, of_trees: CostTable, ahead: int) -> str:
    played = {
        name: [player(each, of_trees if "trees" in name else table, each.prompt_length + ahead) for _, each in answers]
        for name, player in PLAYERS.items()
    }
    fixed = played.pop("fixed 16")
    a_round = (
        sum(each.tokens for each in way) / sum(each.rounds for each in way) for way in (fixed, played["auto trees"])
    )
    ratios = (interval(answers, way, fixed) for way in played.values())
    against_auto = interval(answers, played["auto trees"], played["auto"])
    figures = (*(f"{each:.2f}" for each in a_round), f"{rate(fixed):.0f}", *ratios, against_auto)
    return f"| {cell[0]} T={cell[1]} | {' | '.join(figures)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, default=["chat", "explain"])
    parser.add_argument("--prompts", type=int, default=40, help="of each domain")
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 4], help="where the temperature is not 0")
    parser.add_argument("--tree-ms", type=float, default=0.0, help="beyond what a drafted round was measured to take")
    options = parser.parse_args()

    recorded = record_all(options.domains, options.prompts, options.seeds)
    answers = sorted((Answer(*each) for each in recorded), key=lambda answer: answer.cell)
    tokens = sum(len(answer.recording.blocks) for answer in answers)
    print(f"{len(answers)} answers, {tokens} tokens; ratios are to fixed 16")
    for name, table in recorded_tables().items():
        measured = TREES.get(name, table)
        dearer = tuple(replace(costs, draft=costs.draft + options.tree_ms) for costs in measured.costs)
        for ahead in (0, LONG):
            print(f"\n{name}, {ahead} tokens ahead")
            print(
                "| cell | tokens a round, chain | tree | fixed 16, tok/s |",
                *(f"{each} |" for each in list(PLAYERS)[1:]),
                "auto trees / auto |",
            )
            print("|--" * (len(PLAYERS) + 4) + "|")
            for key, group in groupby(answers, lambda answer: answer.cell):
                print(row(key, list(group), table, replace(measured, costs=dearer), ahead), flush=True)


if __name__ == "__main__":
    main()
