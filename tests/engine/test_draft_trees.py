"""Trees of drafts, as ``python -m tests.engine.draft_trees`` plays them."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from math import prod
from pathlib import Path

import pytest
import torch

from engine.checkpoint import load_drafter, load_target
from engine.commands import GenerationSettings
from engine.demo.confirm import questions
from engine.tuning.files import load_recordings
from engine.tuning.play import Anchor, play
from engine.tuning.record import record_drafts
from engine.width import Auto, Fixed, Policy
from tests.engine.conftest import CPU, no_progress
from tests.engine.draft_trees import CHOICES, record
from tests.engine.recorded_costs import recorded_tables
from tests.engine.trees import (
    ROWS,
    AutoTrees,
    Block,
    Node,
    TreePolicy,
    WholeTrees,
    accepted_path,
    best_first,
    play_trees,
)

TABLES = recorded_tables()
RECORDINGS = load_recordings(Path(__file__).with_name("drafts.xz"))


def marginals(seed: int, depth: int) -> tuple[tuple[float, ...], ...]:
    rng = random.Random(seed)
    weights = [sorted((rng.random() ** 4 for _ in range(CHOICES)), reverse=True) for _ in range(depth)]
    return tuple(tuple(each / sum(position) for each in position) for position in weights)


def choices_to(tree: list[Node], row: int) -> tuple[int, ...]:
    """From the anchor on."""
    node = tree[row - 1]
    return (*(choices_to(tree, node.parent) if node.parent else ()), node.choice)


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_holds_the_likeliest_nodes_and_parents_come_first(seed: int) -> None:
    chances = marginals(seed, depth=5)
    tree = best_first(chances)
    assert len(tree) == ROWS - 1
    paths = [choices_to(tree, row) for row in range(1, ROWS)]
    assert len(set(paths)) == len(paths)
    for row, (node, path) in enumerate(zip(tree, paths, strict=True), 1):
        assert node.parent < row and node.depth == len(path)
        assert node.chance == pytest.approx(prod(map(lambda position, choice: position[choice], chances, path)))
    every = (prod(position) for depth in range(1, len(chances) + 1) for position in product(*chances[:depth]))
    assert [node.chance for node in tree] == pytest.approx(sorted(every, reverse=True)[: ROWS - 1])


def test_a_drafter_that_is_sure_makes_a_chain() -> None:
    tree = best_first([(0.97, 0.01, 0.01, 0.01)] * (ROWS - 1))
    assert [(node.parent, node.depth, node.choice) for node in tree] == [(row, row + 1, 0) for row in range(ROWS - 1)]


def test_no_node_lies_behind_the_end_of_the_text() -> None:
    assert [node.choice for node in best_first([(0.5, 0.3, 0.1, 0.05)])] == [0, 1, 2, 3]
    assert best_first([]) == []


def test_what_the_text_says_is_accepted_as_far_as_the_tree_goes() -> None:
    #       anchor
    #      /      \
    #   1: a      3: b
    #   /   \        \
    # 2: a  5: b     4: a
    tree = [
        Node(parent, depth, choice, 0.1)
        for parent, depth, choice in [(0, 1, 0), (1, 2, 0), (0, 1, 1), (3, 2, 0), (1, 2, 1)]
    ]
    assert accepted_path(tree, (0, 0, 0)) == [1, 2]
    assert accepted_path(tree, (0, 1)) == [1, 5]
    assert accepted_path(tree, (1, 0)) == [3, 4]
    assert accepted_path(tree, (1, 1, 0)) == [3]
    assert accepted_path(tree, (0, -1, 0)) == [1]
    assert accepted_path(tree, (2, 0)) == accepted_path(tree, ()) == []


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("trees", "chains"),
    [(lambda table: WholeTrees(), lambda table: Fixed(ROWS)), (AutoTrees, Auto)],
    ids=["whole", "auto"],
)
def test_with_one_choice_a_position_trees_are_chains(
    name: str, trees: Callable[..., TreePolicy], chains: Callable[..., Policy]
) -> None:
    table = TABLES[name]
    for recording in RECORDINGS[::9]:
        blocks = [single(anchor) for anchor in recording.anchors]
        assert [block.chain() for block in blocks] == list(recording.anchors)
        played = play_trees(trees(table), blocks, table, recording.prompt_length)
        assert played == play(chains(table), recording.anchors, table, recording.prompt_length)


def single(anchor: Anchor) -> Block:
    wrong = len(anchor.confidences) - anchor.num_right
    return Block(tuple((each,) for each in anchor.confidences), (0,) * anchor.num_right + (-1,) * wrong)


def test_choices_are_those_of_the_drafts(bundled_pair: Path) -> None:
    """First choices are what is drafted today, and where a further one was right the tree follows it."""
    torch.set_num_threads(1)
    target = load_target(bundled_pair / "target", CPU, no_progress)
    drafter = load_drafter(bundled_pair / "drafter", target, no_progress)
    settings = GenerationSettings(temperature=1.0, seed=3, max_new_tokens=60)
    prompt = next(ids for domain, ids in questions(1) if domain == "explain")
    blocks = record(target, drafter, prompt, settings)
    chains = record_drafts(target, drafter, prompt, settings)
    assert len(blocks) == len(chains) > 20
    for block, anchor in zip(blocks, chains, strict=True):
        assert block.chain().num_right == anchor.num_right
        assert block.chain().confidences == pytest.approx(anchor.confidences)
        assert all(position == tuple(sorted(position, reverse=True)) for position in block.chances)
    longer = [len(accepted_path(best_first(block.chances), block.said)) - block.chain().num_right for block in blocks]
    assert max(longer) > 0
