"""Lookups on the device: found as defined, and chosen as by the policy."""

from __future__ import annotations

import random

import pytest
import torch

from engine.events import Match
from engine.kernels.round import lookup as kernels
from engine.kernels.round.lookup import LookupText, choose_chain, look_up
from engine.kernels.round.state import CHANCE, LOOKED_UP, MATCH_DISTANCE, MATCH_LENGTH, RoundState
from engine.kernels.round.verify_width import choice_numbers
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.lookup import LookedUpChain, continuation, longest_match, num_agreed
from tests.kernels.tensors import CPU

EXPERTS = CostTable((0,), (RoundCosts(0.75, tuple(2.3 + 0.14 * row for row in range(16)), 0.01, 0.03),))
STOPS = [3, 777]
ROWS = 16


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several programs and rounds of blocks for a short text."""
    monkeypatch.setattr(kernels, "PROGRAMS", 4)
    monkeypatch.setattr(kernels, "BLOCK", 16)


def on_device(text: list[int], width: int = ROWS) -> tuple[RoundState, LookupText]:
    state, held = RoundState.allocate(CPU), LookupText.allocate(512, CPU)
    held.ids.random_(0, 5)  # what stands behind a text says nothing
    held.ids[: len(text)] = torch.tensor(text, dtype=torch.int32)
    state.cursor.fill_(len(text) - 1)
    state.stops[: len(STOPS)] = torch.tensor(STOPS, dtype=torch.int32)
    state.width.fill_(width)
    held = LookupText(held.ids, torch.full((4,), 99, dtype=torch.int32))
    look_up(state, held)
    return state, held


def some_text(seed: int) -> list[int]:
    rng = random.Random(seed)
    if seed % 4 == 0:  # a text with a period
        return [rng.randrange(9) for _ in range(rng.randint(1, 5))] * rng.randint(1, 40)
    blocks = [[rng.randrange(2 + seed % 5) for _ in range(rng.randint(1, 60))] for _ in range(3)]
    return [token for _ in range(rng.randint(1, 6)) for token in rng.choice(blocks)]


@pytest.mark.parametrize("seed", range(24))
def test_it_finds_and_guesses_what_the_definition_does(seed: int) -> None:
    text = some_text(seed)
    state, held = on_device(text)
    ids, probability = torch.zeros(17, dtype=torch.int64), torch.zeros(16)
    policy = Auto(EXPERTS)
    policy.begin(drafts=False)
    choose_chain(state, choice_numbers(policy.numbers(0)), ids, held, probability, drafted=False)
    match = longest_match(text)
    record = state.record.tolist()
    found = Match(record[MATCH_LENGTH], record[MATCH_DISTANCE]) if record[MATCH_LENGTH] else None
    assert found == match
    guess = [] if match is None else continuation(text, match.distance, ROWS - 1, STOPS)
    assert ids[1 : record[LOOKED_UP] + 1].tolist() == guess
    if match is not None:
        tree, *_ = policy.choose((), 0, ROWS, LookedUpChain(match.length, len(guess)))
        assert int(state.width) == len(tree) + 1


@pytest.mark.parametrize("seed", range(20))
def test_beside_a_draft_the_chain_is_taken_that_the_policy_takes(seed: int) -> None:
    rng = random.Random(seed)
    text = [*some_text(4 * seed + 1), 1, 0, 1]
    width = rng.randint(2, ROWS)
    rows = rng.choice([width, ROWS])  # of a pass, where the drafter's block may be shorter
    state, held = on_device(text, rows)
    state.draft_width.fill_(width)
    policy = Auto(EXPERTS)
    for _ in range(5 * seed):
        policy.worth.matches.observe(rng.randint(3, 32), rng.random() < 0.7)
        policy.worth.first.observe(confidence := rng.random(), rng.random() < confidence)
    match = longest_match(text)
    guess = [] if match is None else continuation(text, match.distance, rows - 1, STOPS)
    same = rng.randint(0, width - 1)
    draft = [*guess[:same], *(rng.randrange(5) for _ in range(width))][: width - 1]
    confidences = [rng.random() ** 0.3 for _ in draft]
    ids, probability = torch.zeros(17, dtype=torch.int64), torch.zeros(16)
    ids[1:width] = torch.tensor(draft)
    probability[: width - 1] = torch.tensor(confidences)
    choose_chain(state, choice_numbers(policy.numbers(0)), ids, held, probability, drafted=True)
    looked = None if match is None else LookedUpChain(match.length, len(guess), num_agreed(guess, draft))
    tree, choice, looked_up, _ = policy.choose([(each,) for each in confidences], 0, rows, looked)
    assert int(state.width) == len(tree) + 1
    record = state.record.tolist()
    assert choice is not None and record[LOOKED_UP] == len(looked_up)
    taken = guess if looked_up else draft
    assert ids[1 : len(taken) + 1].tolist() == taken
    chance = state.record.view(torch.float32).tolist()[CHANCE]
    assert chance == pytest.approx(choice.chance, abs=1e-5)


def test_an_ended_answer_is_left_alone() -> None:
    state, held = on_device([1, 2, 3] * 9, width=0)
    ids = torch.zeros(17, dtype=torch.int64)
    choose_chain(state, choice_numbers(Auto(EXPERTS).numbers(0)), ids, held, torch.zeros(16), drafted=False)
    assert int(state.width) == 0 and not ids.any()
