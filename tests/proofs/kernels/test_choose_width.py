"""The choice of a width on the device is that of the policy."""

from __future__ import annotations

import random

import pytest
import torch

from engine.kernels.round.state import CHANCE, COST_MS, RoundState
from engine.kernels.round.verify_width import choice_numbers, choose_width
from engine.speculation.auto import Auto
from engine.speculation.choice import Chosen
from engine.speculation.costs import CostTable, RoundCosts
from tests.kernels.tensors import CPU

EXPERTS = CostTable((0,), (RoundCosts(0.75, tuple(2.3 + 0.54 * row for row in range(16))),))
STEPPED = CostTable((0,), (RoundCosts(1.0, tuple(3.0 + (row // 4) for row in range(16))),))
CHAIN = ((0.9,),) * 15


def by_policy(policy: Auto, confidences: list[float]) -> Chosen:
    """What it chooses of a chain."""
    return policy.choose([(each,) for each in confidences], 0)


def chosen(policy: Auto | None, confidences: list[float]) -> tuple[int, float, float]:
    """Drafts to verify, chance and cost at the edge, as the kernel has them."""
    state = RoundState.allocate(CPU)
    state.width.fill_(len(confidences) + 1)
    probability = torch.full((16,), float("nan"))
    probability[: len(confidences)] = torch.tensor(confidences)
    choose_width(state, choice_numbers(None if policy is None else policy.numbers(0)), probability)
    chance, cost_ms = state.record.view(torch.float32)[CHANCE:][: COST_MS - CHANCE + 1].tolist()
    return int(state.width) - 1, chance, cost_ms


@pytest.mark.parametrize("table", [EXPERTS, STEPPED], ids=["experts", "stepped"])
@pytest.mark.parametrize("seed", range(12))
def test_it_chooses_what_the_policy_chooses(table: CostTable, seed: int) -> None:
    rng = random.Random(seed)
    policy = Auto(table)
    for _ in range(seed * 5):  # some experience
        drafts = [rng.random() ** 0.3 for _ in range(15)]
        chances = [(draft,) for draft in drafts]
        tree, *_ = policy.choose(chances, 0)
        policy.observe(chances, tree, range(1, rng.randint(0, len(tree)) + 1), 0)
    confidences = [rng.random() ** 0.3 for _ in range(rng.randint(1, 15))]
    width, chance, cost_ms = chosen(policy, confidences)
    tree, why, *_ = by_policy(policy, confidences)
    assert why is not None and width == len(tree)
    assert (chance, cost_ms) == pytest.approx((why.chance, why.cost_ms), abs=1e-5)


@pytest.mark.parametrize("confidences", [[0.0] * 15, [1.0] * 15, [0.5]], ids=["hopeless", "certain", "one"])
def test_at_the_ends(confidences: list[float]) -> None:
    policy = Auto(EXPERTS)
    assert chosen(policy, confidences)[0] == len(by_policy(policy, confidences).tree)


def test_without_a_policy_whole_drafts_are_verified() -> None:
    assert chosen(None, [0.0] * 9)[0] == 9


@pytest.mark.parametrize("width", [0, 1])
def test_a_round_without_drafts_is_left_alone(width: int) -> None:
    state = RoundState.allocate(CPU)
    state.width.fill_(width)
    choose_width(state, choice_numbers(Auto(EXPERTS).numbers(0)), torch.ones(16))
    assert int(state.width) == width


def test_a_try_looks_at_one_draft_whatever_its_chance() -> None:
    policy = Auto(EXPERTS)
    while policy.wants_draft(0):  # drafts that are never right, until they end drafting
        policy.observe(CHAIN, policy.choose(CHAIN, 0)[0], (), 0)
    while not policy.wants_draft(0):
        policy.observe((), (), (), 0)
    for confidence in (0.0, 1.0):
        confidences = [confidence] * 15
        assert chosen(policy, confidences)[0] == len(by_policy(policy, confidences).tree) == 1
