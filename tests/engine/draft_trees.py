"""``python -m tests.engine.draft_trees``: what trees of drafts would yield instead of chains, at recorded costs.

The bundled pair answers held-out questions, and its drafter's best four choices for every position of a block are kept
behind every token. Chains and trees are played over them, round by round; ``oracle`` knows beforehand which chains are
right. Trees are ``engine.trees``.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor, nn

from engine.checkpoint import load_drafter, load_target
from engine.commands import GenerationSettings
from engine.demo.confirm import questions
from engine.hub.pairs import BUNDLED_PAIR
from engine.kernels.head import capped_logits
from engine.models.dflash import DFlashDrafter
from engine.models.gemma4 import Gemma4
from engine.trees import CHOICES, ROWS, AutoTrees
from engine.tuning.play import Anchor, Block, Played, play, play_oracle, play_trees
from engine.tuning.rates import RESAMPLES
from engine.tuning.record import drafted_answer
from engine.width import Auto, CostTable, Fixed
from tests.engine.policy_figures import LONG
from tests.engine.record_drafts import TEMPERATURES
from tests.engine.recorded_costs import recorded_tables

DOMAINS = ("chat", "explain", "maths", "code", "html", "unknown")


class Answer(NamedTuple):
    domain: str
    temperature: float
    question: int
    """Answers to one question are alike."""
    prompt_length: int
    blocks: list[Block]
    chains: list[Anchor]


def record(target: Gemma4, drafter: DFlashDrafter, prompt: Sequence[int], settings: GenerationSettings) -> list[Block]:
    """Lets the target write an answer, and keeps the drafter's best choices behind every token of it."""
    drafts: list[tuple[list[list[int]], list[list[float]]]] = []

    def keep(norm: nn.Module, inputs: object, rows: Tensor) -> None:
        logits = capped_logits(rows[1:], target.embed_tokens.weight, drafter.config.logit_softcap)
        best = logits.softmax(dim=-1).topk(CHOICES)
        drafts.append((best.indices.tolist(), best.values.tolist()))

    hook = drafter.norm.register_forward_hook(keep)
    try:
        text = [token for token, _, _ in drafted_answer(target, drafter, prompt, settings)]
    finally:
        hook.remove()
    return [_block(ids, chances, text[place:]) for place, (ids, chances) in enumerate(drafts[:-1], 1)]


def _block(ids: list[list[int]], chances: list[list[float]], text: list[int]) -> Block:
    said = [choices.index(token) if token in choices else -1 for choices, token in zip(ids, text, strict=False)]
    return Block(tuple(map(tuple, chances[: len(said)])), tuple(said))


def record_all(domains: Sequence[str], prompts: int, seeds: Sequence[int]) -> list[Answer]:
    """Answers to the first held-out questions of each domain. Greedy ones need no second seed."""
    device = torch.device("cpu")
    torch.set_num_threads(1)
    target = load_target(BUNDLED_PAIR / "target", device, lambda *_: None)
    drafter = load_drafter(BUNDLED_PAIR / "drafter", target, lambda *_: None)
    answers = []
    for question, (domain, ids) in enumerate(questions(prompts)):
        for temperature in TEMPERATURES if domain in domains else ():
            for seed in seeds if temperature else seeds[:1]:
                settings = GenerationSettings(temperature=temperature, seed=seed, max_new_tokens=600)
                blocks = record(target, drafter, ids, settings)
                chains = [block.chain() for block in blocks]
                answers.append(Answer(domain, temperature, question, len(ids), blocks, chains))
    return answers


Player = Callable[[Answer, CostTable, int], Played]
"""Of an answer, at costs, behind a prompt of so many tokens."""
PLAYERS: dict[str, Player] = {
    "fixed 16": lambda answer, table, length: play(Fixed(ROWS), answer.chains, table, length),
    "auto": lambda answer, table, length: play(Auto(table), answer.chains, table, length),
    "oracle": lambda answer, table, length: play_oracle(answer.chains, table, length),
    "auto trees": lambda answer, table, length: play_trees(AutoTrees(table), answer.blocks, table, length),
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


def row(cell: tuple[str, float], answers: Sequence[Answer], table: CostTable, tree_ms: float, ahead: int) -> str:
    dearer = replace(table, costs=tuple(replace(costs, draft=costs.draft + tree_ms) for costs in table.costs))
    played = {
        name: [player(each, dearer if "trees" in name else table, each.prompt_length + ahead) for each in answers]
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
    parser.add_argument("--tree-ms", type=float, default=0.0, help="what a tree adds to a drafted round")
    options = parser.parse_args()

    def cell(answer: Answer) -> tuple[str, float]:
        return answer.domain, answer.temperature

    answers = sorted(record_all(options.domains, options.prompts, options.seeds), key=cell)
    print(f"{len(answers)} answers, {sum(len(each.blocks) for each in answers)} tokens; ratios are to fixed 16")
    for name, table in recorded_tables().items():
        for ahead in (0, LONG):
            print(f"\n{name}, {ahead} tokens ahead")
            print(
                "| cell | tokens a round, chain | tree | fixed 16, tok/s |",
                *(f"{each} |" for each in list(PLAYERS)[1:]),
                "auto trees / auto |",
            )
            print("|--" * (len(PLAYERS) + 4) + "|")
            for key, group in groupby(answers, cell):
                print(row(key, list(group), table, options.tree_ms, ahead), flush=True)


if __name__ == "__main__":
    main()
