"""The tree that the device chooses is the policy's."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields

import pytest
import torch
from torch import Tensor

from engine.kernels.accept import CHANCE, COST_MS, MAX_SCRIPT, RoundState
from engine.kernels.accept_tree import CHOICE_PROBABILITIES, DRAFTS, NUMBERS, PARENTS, TREE_RECORD_SIZE
from engine.kernels.choices import Choices
from engine.kernels.grow import grow_tree, tree_numbers
from engine.kernels.jit import INTERPRETED
from engine.kernels.tree_rows import TreeRows
from engine.trees import CHOICES, AutoTrees, Node
from engine.width import Choice, CostTable, RoundCosts
from tests.kernels.drawn_trees import posed

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CPU = torch.device("cpu")
FLAT = CostTable((0,), (RoundCosts(2.0, tuple(16.0 + row / 8 for row in range(16))),))
STEPPED = CostTable((0,), (RoundCosts(1.0, tuple(4.0 + (row // 4) / 2 for row in range(16))),))
DEAR = CostTable((0,), (RoundCosts(0.75, tuple(2.25 + 0.5 * row for row in range(16))),))
NO_SCRIPT = torch.full((MAX_SCRIPT, 16), -1.0)


@dataclass
class Grown:
    state: RoundState
    choices: Choices
    ids: Tensor
    parents: Tensor
    rows: TreeRows


def grown(
    policy: AutoTrees | None,
    chances: list[list[float]],
    scripted: Tensor = NO_SCRIPT,
    script_length: int = 0,
    width: int | None = None,
) -> Grown:
    """What the kernel makes of the chances of a block's positions; token 10 * position + choice stands for each."""
    state, choices = RoundState.allocate(CPU, TREE_RECORD_SIZE), Choices.allocate(CPU)
    state.width.fill_(len(chances) + 1 if width is None else width)
    state.script_length.fill_(script_length)
    choices.probabilities.fill_(float("nan"))
    choices.probabilities[: len(chances)] = torch.tensor(chances).reshape(-1, CHOICES)
    choices.tokens[:] = 10 * torch.arange(1, 17)[:, None] + torch.arange(CHOICES)
    ids = torch.full((17,), 7)
    rows, parents = posed([Node(0, 1, 0, 1.0), Node(0, 1, 1, 1.0), Node(2, 2, 0, 1.0)])  # of the round before
    grow_tree(state, tree_numbers(policy, 0), choices, scripted, ids, parents, rows)
    return Grown(state, choices, ids, parents, rows)


def check(result: Grown, tree: list[Node], chances: list[list[float]]) -> None:
    """That the device holds this tree, and the record all that the host needs to rebuild it."""
    count, record = len(tree), result.state.record
    rows, parents = posed(tree)
    choices = [node.choice for node in tree]
    assert int(result.state.width) == count + 1
    assert result.parents.tolist() == parents.tolist()
    for field in fields(TreeRows):
        assert torch.equal(getattr(result.rows, field.name), getattr(rows, field.name)), field.name
    tokens = [10 * node.depth + node.choice for node in tree]
    assert result.ids.tolist() == [7, *tokens, *[7] * (16 - count)]
    assert record[PARENTS:][:16].tolist() == parents.tolist()
    assert record[NUMBERS:][1 : count + 1].tolist() == choices
    assert record[DRAFTS:][: len(chances)].tolist() == [10 * depth for depth in range(1, len(chances) + 1)]
    kept = record.view(torch.float32)[CHOICE_PROBABILITIES:].view(16, CHOICES)
    assert torch.equal(kept[: len(chances)], torch.tensor(chances)) and (kept[len(chances) :] == 0).all()
    assert torch.equal(result.choices.probabilities[: len(chances)], torch.tensor(chances))


def check_choice(result: Grown, choice: Choice) -> None:
    chance, cost_ms = result.state.record.view(torch.float32)[[CHANCE, COST_MS]].tolist()
    assert (chance, cost_ms) == pytest.approx((choice.chance, choice.cost_ms), abs=1e-5)


def drawn(rng: random.Random, positions: int) -> list[list[float]]:
    """Chances that share 1, of a drafter that is sure or less so."""
    chances = []
    for _ in range(positions):
        parts = sorted((rng.random() ** rng.choice([1, 8]) for _ in range(CHOICES + 1)), reverse=True)
        chances.append([part / sum(parts) for part in parts[:CHOICES]])
    return torch.tensor(chances).tolist()  # as fp32 has them


@pytest.mark.parametrize("table", [FLAT, STEPPED, DEAR], ids=["flat", "stepped", "dear"])
@pytest.mark.parametrize("seed", range(8))
def test_it_grows_the_tree_of_the_policy(table: CostTable, seed: int) -> None:
    rng = random.Random(seed)
    policy = AutoTrees(table)
    for _ in range(seed * 5):  # some experience
        for calibration in (policy.calibration, policy.others):
            calibration.observe(rng.random(), rng.random() < 0.5)
    chances = drawn(rng, 15 if seed < 4 else rng.randint(1, 15))
    tree, choice = policy.tree(chances, 0, len(chances) + 1)
    result = grown(policy, chances)
    check(result, tree, chances)
    check_choice(result, choice)
    rebuilt = policy.rebuilt(chances, [node.parent for node in tree], [node.choice for node in tree])
    assert [node._replace(chance=0) for node in rebuilt] == [node._replace(chance=0) for node in tree]
    assert [node.chance for node in rebuilt] == pytest.approx([node.chance for node in tree])


@pytest.mark.parametrize("seed", range(6))
def test_of_equal_chances_it_takes_the_same_ones(seed: int) -> None:
    """Powers of two, of which fp32 sums and products are exact, and with them many equal ones; also none at all."""
    rng = random.Random(seed)
    policy, values = AutoTrees(FLAT), [0.5, 0.25, 0.25, 0.125, 0.0]
    chances = [sorted(rng.sample(values, CHOICES), reverse=True) for _ in range(rng.choice([3, 15]))]
    tree, choice = policy.tree(chances, 0, len(chances) + 1)
    result = grown(policy, chances)
    check(result, tree, chances)
    check_choice(result, choice)


def test_rows_are_not_all_on_one_path() -> None:
    """What the tests above compare would be of little worth if trees were chains."""
    chances = [[0.4, 0.3, 0.2, 0.1]] * 15
    result = grown(AutoTrees(CostTable((0,), (RoundCosts(0.0, (16.0,) * 16),))), chances)
    assert int(result.state.width) == 16
    assert 2 <= int(result.rows.trunk) <= 6 and len(set(result.parents.tolist())) > 4


@pytest.mark.parametrize("positions", [1, 2, 15])
def test_without_a_policy_first_choices_make_a_chain(positions: int) -> None:
    chances = [[0.0, 0.0, 0.0, 0.0]] * positions
    check(grown(None, chances), [Node(row, row + 1, 0, 1.0) for row in range(positions)], chances)


@pytest.mark.parametrize("width", [0, 1])
def test_a_round_without_drafts_is_left_alone(width: int) -> None:
    result = grown(AutoTrees(FLAT), [], width=width)
    assert int(result.state.width) == width and (result.ids == 7).all() and (result.state.record == 0).all()


def test_a_try_looks_at_one_draft_whatever_its_chance() -> None:
    policy = AutoTrees(DEAR)
    policy._resting = True
    assert policy.wants_draft(0) and policy.trying
    for first in (0.0, 1.0):
        chances = [[first, 0.0, 0.0, 0.0]] * 15
        check(grown(policy, chances), [Node(0, 1, 0, first)], chances)


def test_scripted_confidences_make_chains_of_first_choices() -> None:
    policy, script = AutoTrees(DEAR), NO_SCRIPT.clone()
    script[0], script[1] = 0.0, 1.0
    chances = [[0.25, 0.25, 0.25, 0.25]] * 15
    result = grown(policy, chances, script, 2)
    check(result, [], [[0.0, 0.25, 0.25, 0.25]] * 15)
    assert int(result.state.script_place) == 1
    script = script.flip(0)[:2].repeat(MAX_SCRIPT // 2, 1)
    script[0] = 1.0
    result = grown(policy, chances, script, 2)
    check(result, [Node(row, row + 1, 0, 1.0) for row in range(15)], [[1.0, 0.25, 0.25, 0.25]] * 15)
    assert int(result.state.script_place) == 0
    # Without confidences of its own, a scripted round is a chain as well.
    result = grown(AutoTrees(FLAT), chances, NO_SCRIPT, 2)
    assert int(result.state.width) > 1 and int(result.rows.trunk) == int(result.state.width)
