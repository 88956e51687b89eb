"""Trees of drafts: which nodes, in which rows, what is accepted of them, and how many of them are verified."""

from __future__ import annotations

import random
from itertools import cycle, product
from math import prod

import pytest

from engine.lab.judging.play import play
from engine.speculation.auto import Auto
from engine.speculation.calibration import PRIOR_WEIGHT, PooledCalibration
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.policy import Fixed
from engine.speculation.trees import (
    CHOICES,
    LOOKED_UP,
    ROWS,
    LookupBranch,
    Node,
    accepted_path,
    best_first,
    branches,
    chain,
    in_rows,
    path_to,
    placed,
)
from tests.proofs.engine.played_auto import AHEAD, SURE, adversarial, chains, collapse, play_auto, scattered
from tests.proofs.engine.recorded import recorded_tables

TABLES = recorded_tables()
DENSE = CostTable((0,), (RoundCosts(1.6, tuple(16.8 + 0.02 * row for row in range(16))),))
FORK = [Node(0, 1, 0, 0.5), Node(1, 2, 0, 0.3), Node(0, 1, 1, 0.2), Node(3, 2, 0, 0.15), Node(1, 2, 1, 0.1)]
"""
     anchor
    /      \\
  1: a      3: b
  /   \\        \\
2: a  5: b     4: a
"""


def marginals(seed: int, depth: int) -> tuple[tuple[float, ...], ...]:
    rng = random.Random(seed)
    weights = [sorted((rng.random() ** 4 for _ in range(CHOICES)), reverse=True) for _ in range(depth)]
    return tuple(tuple(each / sum(position) for each in position) for position in weights)


def choices_to(tree: list[Node], row: int) -> tuple[int, ...]:
    """From the anchor on."""
    return tuple(tree[each - 1].choice for each in path_to(tree, row)[1:])


@pytest.mark.parametrize("seed", range(5))
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


@pytest.mark.parametrize("seed", range(6))
def test_a_looked_up_chain_is_one_path_more_and_no_node_stands_twice(seed: int) -> None:
    rng, chances = random.Random(seed), marginals(seed, depth=5)
    choices = tuple(rng.choice([0, rng.randrange(CHOICES), LOOKED_UP]) for _ in range(rng.randint(1, 5)))
    # Where it agrees with a choice, it is at least as likely.
    given = tuple(max((rng.random(), *at[choice : choice + 1])) for at, choice in zip(chances, choices, strict=False))
    tree = best_first(chances, branch=LookupBranch(choices, given))
    paths = [choices_to(tree, row) for row in range(1, ROWS)]
    assert len(set(paths)) == len(paths)

    def chance(path: tuple[int, ...]) -> float:
        found = 1.0
        for depth, choice in enumerate(path):
            is_looked_up = path[: depth + 1] == choices[: depth + 1]
            found *= given[depth] if is_looked_up else chances[depth][choice]
        return found

    ways = [path for depth in range(1, 6) for path in product(range(CHOICES), repeat=depth)]
    ahead = [choices[:depth] for depth in range(1, len(choices) + 1)]
    behind = [(*path, *way) for path in ahead for way in [(), *ways] if len(path) + len(way) <= 5]
    every = {path: chance(path) for path in [*ways, *behind]}
    assert [node.chance for node in tree] == pytest.approx([every[path] for path in paths])
    assert [node.chance for node in tree] == pytest.approx(sorted(every.values(), reverse=True)[: ROWS - 1])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [0, 1, 7, ROWS - 1])
def test_rows_hold_the_same_nodes_the_trunk_in_front(seed: int, count: int) -> None:
    nodes = best_first(marginals(seed, depth=8))[:count]
    tree = in_rows(nodes)

    def known(tree: list[Node]) -> set[tuple[tuple[int, ...], float]]:
        return {(choices_to(tree, row), node.chance) for row, node in enumerate(tree, 1)}

    assert known(tree) == known(nodes) and len(tree) == count
    trunk = 1
    for row, node in enumerate(tree, 1):
        assert node.parent < row and node.depth == 1 + (tree[node.parent - 1].depth if node.parent else 0) <= row
        on_trunk = not any(choices_to(tree, row))
        assert not on_trunk or (node.depth == row == trunk), "first choices stand where a chain's do, before all others"
        trunk += on_trunk


def test_a_path_has_a_row_for_each_depth() -> None:
    assert [path_to(FORK, row) for row in range(6)] == [[0], [0, 1], [0, 1, 2], [0, 3], [0, 3, 4], [0, 1, 5]]
    swapped = [Node(0, 1, LOOKED_UP, 0.5), Node(0, 1, 0, 0.3), Node(1, 2, 0, 0.2)]
    assert [(node.parent, node.choice) for node in in_rows(swapped)] == [(0, LOOKED_UP), (1, 0), (0, 0)]
    assert path_to(in_rows(swapped), 2) == [0, 1, 2]


def test_what_the_text_says_is_accepted_as_far_as_the_tree_goes() -> None:
    assert accepted_path(FORK, (0, 0, 0)) == [1, 2]
    assert accepted_path(FORK, (0, 1)) == [1, 5]
    assert accepted_path(FORK, (1, 0)) == [3, 4]
    assert accepted_path(FORK, (1, 1, 0)) == [3]
    assert accepted_path(FORK, (0, -1, 0)) == [1]
    assert accepted_path(FORK, (2, 0)) == accepted_path(FORK, ()) == []


def test_branches_are_the_ways_from_the_anchor_to_a_leaf() -> None:
    assert branches(FORK) == [path_to(FORK, row) for row in range(1, 6) if row not in {n.parent for n in FORK}]
    assert branches(chain(3)) == [[0, 1, 2, 3]] and branches(()) == [[0]]


def test_a_tree_is_known_by_its_parents_and_choices() -> None:
    chances = marginals(2, depth=6)
    tree = in_rows(best_first(chances))
    same = placed([node.parent for node in tree], [node.choice for node in tree], chances)
    expected = [node._replace(chance=pytest.approx(node.chance), candidate=row) for row, node in enumerate(tree, 1)]
    assert expected == same


def test_the_choice_is_the_number_of_nodes_worth_most() -> None:
    trees, chances = Auto(DENSE), marginals(1, depth=8)
    tree, choice, *_ = trees.choose(chances, 0)
    assert choice is not None
    nodes, costs = best_first(chances), DENSE.at(0).verify
    # Nothing was observed yet: what the drafter gives its choices is their chance.
    assert tree == in_rows(nodes[: len(tree)]) and tree
    price = choice.tok_s / 1e3
    worth = [sum(node.chance for node in nodes[:count]) - price * costs[count] for count in range(len(nodes) + 1)]
    assert worth[len(tree)] == pytest.approx(max(worth))
    edge = min(len(tree), len(nodes) - 1)
    assert choice.chance == nodes[edge].chance
    assert choice.cost_ms == costs[edge + 1] - costs[edge]
    assert choice.tok_s == 1e3 * trees.price(0)


def test_a_draft_on_its_way_when_a_rest_begins_is_not_counted() -> None:
    """On the device the next round leaves before the last one is known. What fell in it still teaches."""
    trees, position = Auto(DENSE), ((0.6, 0.2, 0.1, 0.05),) * 15
    for _ in range(100):
        assert trees.wants_draft(0)
        tree, *_ = trees.choose(position, 0)
        trees.observe(position, tree, [], 0)
        if trees.price(0) == 1 / DENSE.at(0).rest and not trees.wants_draft(0):
            break
    else:
        pytest.fail("it never rests")
    price, seen = trees.price(0), trees.worth.first.chance(0.6)
    trees.observe(position, tree, [1, 2], 0)
    assert trees.price(0) == price
    assert trees.worth.first.chance(0.6) > seen
    for _ in range(4):
        assert not trees.wants_draft(0)
        trees.observe((), (), (), 0)
    assert trees.wants_draft(0) and trees.backoff.is_trying


def test_only_choices_behind_what_was_accepted_teach() -> None:
    chances = ((0.55, 0.35), (0.65, 0.25))
    trees = Auto(DENSE)
    trees.observe(chances, FORK, [3], 0)  # b, and then neither of a's children; the one behind b fell
    assert trees.worth.first.chance(0.55) == pytest.approx(fallen(0.55))
    assert trees.worth.first.chance(0.65) == pytest.approx(fallen(0.65))
    found = PooledCalibration()
    assert all(found.chance(chance) == pytest.approx(chance) for chance in (0.01, 0.05, 0.25, 0.35))
    found.observe(0.35, accepted=True)  # not the choice of 0.25 behind a
    assert trees.worth.others.chance(0.25) == found.chance(0.25) > 0.25


def fallen(confidence: float) -> float:
    """What is left of a confidence after one such draft fell."""
    return confidence * PRIOR_WEIGHT / (PRIOR_WEIGHT + 1)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("ahead", "confidence"), [*zip(cycle(AHEAD), SURE, strict=False)])
def test_trees_that_are_never_right_cost_little(name: str, ahead: int, confidence: float) -> None:
    """Over 2000 tokens at least 0.97 of plain decoding, however sure the drafter is of itself."""
    assert adversarial(name, TABLES[name], confidence, ahead) >= 0.97


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("ahead", "confidence"), [*zip(AHEAD, (0.2, 0.99), strict=True)])
def test_it_comes_back_after_a_collapse(name: str, ahead: int, confidence: float) -> None:
    """Within 5 % of somebody who knew beforehand which way is best for which part, in the mean of four texts."""
    assert collapse(name, TABLES[name], confidence, ahead) >= 0.95


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("confidence", (0.5, 0.8))
def test_it_is_near_the_best_fixed_width_without_knowing_it(name: str, confidence: float) -> None:
    """On drafts whose confidence says little about which of them are good."""
    blocks, table = scattered(4000, confidence, seed=1), TABLES[name]
    best = min(play(Fixed(size), chains(blocks), table).milliseconds for size in (1, 2, 4, 8, 16))
    assert best / play_auto(name, table, blocks).milliseconds >= 0.97
