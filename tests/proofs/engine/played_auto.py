"""Plays ``auto`` over drafts: it verifies trees on dense models, chains on mixtures of experts.

Also makes random drafts, with the choices that trees need."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from engine.lab.judging.play import Played, RecordedChoices, RecordedDraft, play
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable
from engine.speculation.policy import Fixed, Policy
from engine.speculation.trees import ROWS, accepted_path, best_first
from tests.proofs.engine.recorded import LONG, DraftRecording, tree_tables

TREES = tree_tables()
SIZES = range(1, 17)
AHEAD = (0, LONG)
SURE = (0.1, 0.5, 0.9, 0.99, 1.0)
"""Confidences of drafts that are never right."""
SHARES = (0.5, 0.25, 0.15)
"""The shares of what the first choice leaves that the next choices get. The rest goes to the vocabulary."""


def chains(blocks: Sequence[RecordedChoices]) -> list[RecordedDraft]:
    return [block.chain() for block in blocks]


def play_auto(name: str, table: CostTable, blocks: Sequence[RecordedChoices], prompt_length: int = 0) -> Played:
    """Plays ``auto`` over drafts. ``table``: costs of chains, by the name that ``recorded_tables`` gives it; trees have
    costs of their own."""
    if name not in TREES:
        return play(Auto(table), chains(blocks), table, prompt_length)
    return play(Auto(TREES[name]), blocks, TREES[name], prompt_length)


def play_best(name: str, table: CostTable, blocks: Sequence[RecordedChoices], block_size: int, ahead: int) -> float:
    """Milliseconds of the faster way without choosing: chains of this size, or whole trees where ``auto`` has them."""
    way = play(Fixed(block_size), chains(blocks), table, ahead).milliseconds
    return min(way, _whole_trees(TREES[name], blocks, ahead)) if block_size > 1 and name in TREES else way


def _whole_trees(table: CostTable, blocks: Sequence[RecordedChoices], ahead: int) -> float:
    position, milliseconds = 0, 0.0
    while position < len(blocks):
        tree = best_first(blocks[position].chances)
        milliseconds += table.at(ahead + position).round(len(tree))
        position += 1 + len(accepted_path(tree, blocks[position].taken_choices))
    return milliseconds


def spread(confidence: float) -> tuple[float, ...]:
    """The chances of the choices at a position, the likeliest first, if the first has ``confidence``."""
    return tuple(sorted((confidence, *(share * (1 - confidence) for share in SHARES)), reverse=True))


@cache
def scattered(count: int, confidence: float, seed: int) -> list[RecordedChoices]:
    """Random drafts whose confidence scatters around ``confidence``; every choice is right as often as its confidence
    says."""
    rng = random.Random(seed)
    blocks = []
    for _ in range(count):
        chances = tuple(spread(min(max(rng.gauss(confidence, 0.12), 0.02), 0.99)) for _ in range(ROWS - 1))
        said = (rng.choices((*range(len(each)), -1), (*each, 1 - sum(each)))[0] for each in chances)
        blocks.append(RecordedChoices(chances, tuple(said)))
    return blocks


def never_right(count: int, confidence: float) -> list[RecordedChoices]:
    """Drafts none of whose choices is what the text says."""
    return [RecordedChoices((spread(confidence),) * (ROWS - 1), (-1,) * (ROWS - 1))] * count


def tok_s(policy: Callable[[], Policy], answers: Sequence[DraftRecording], table: CostTable) -> float:
    played = [play(policy(), each.anchors, table, each.prompt_length) for each in answers]
    return 1e3 * sum(each.tokens for each in played) / sum(each.milliseconds for each in played)


def behind(ahead: int, recording: DraftRecording) -> DraftRecording:
    """The same recording, with ``ahead`` tokens before it."""
    return replace(recording, prompt_length=recording.prompt_length + ahead)


def adversarial(name: str, table: CostTable, confidence: float, ahead: int = 0) -> float:
    """How many times as long as plain decoding ``auto`` takes with 2000 drafts that are never right."""
    blocks = never_right(2000, confidence)
    plain = play(Fixed(1), chains(blocks), table, ahead)
    return plain.milliseconds / play_auto(name, table, blocks, ahead).milliseconds


def collapse(name: str, table: CostTable, confidence: float, ahead: int = 0) -> float:
    """How many times as long as an oracle ``auto`` takes on good drafts, then wrong ones, then good ones again; the
    oracle knows the best way for each part."""
    sample = chains(scattered(3000, 0.9, seed=7))
    best = min(SIZES, key=lambda size: play(Fixed(size), sample, table, ahead).milliseconds)
    known = auto = 0.0
    for seed in range(4):
        good, again = scattered(600, 0.9, seed), scattered(600, 0.9, seed + 100)
        bad = never_right(560 + 9 * seed, confidence)
        for part, size in ((good, best), (bad, 1), (again, best)):
            known += play_best(name, table, part, size, ahead)
        auto += play_auto(name, table, [*good, *bad, *again], ahead).milliseconds
    return known / auto
