"""Sampling: the generator against its published vectors, the distribution against its definition, acceptance."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
import torch
from torch import Tensor

from engine.sampling.philox import uniform
from engine.sampling.sampling import sample, target_probabilities
from engine.speculation.lookup import num_agreed
from tests.engine.sampling.chi_square import chi_square_p

WORD = 2**32


def philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Philox4x32-10 in the paper's words: a bijection of the counter, ten rounds of multiply and swap."""
    x, (k0, k1) = list(counter), key
    for number in range(10):
        high_0, low_0 = divmod(0xD2511F53 * x[0], WORD)
        high_1, low_1 = divmod(0xCD9E8D57 * x[2], WORD)
        round_k0 = (k0 + number * 0x9E3779B9) % WORD
        round_k1 = (k1 + number * 0xBB67AE85) % WORD
        x = [high_1 ^ x[1] ^ round_k0, low_1, high_0 ^ x[3] ^ round_k1, low_0]
    return tuple(x)


KNOWN_ANSWERS = [  # Random123, tests/kat_vectors, "philox4x32 10": counter, key, output
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((WORD - 1,) * 4, (WORD - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "output"), KNOWN_ANSWERS)
def test_the_tests_philox_gives_the_published_answers(
    counter: tuple[int, ...], key: tuple[int, ...], output: tuple[int, ...]
) -> None:
    assert philox(counter, key) == output


def test_uniform_is_the_first_word_of_philox() -> None:
    assert uniform(0, 0) == 0x6627E8D5 / WORD
    rng = random.Random(0)
    for _ in range(300):
        seed, position = rng.randrange(2**63), rng.randrange(2**40)
        first_word = philox((position % WORD, position // WORD, 0, 0), (seed % WORD, seed // WORD))[0]
        assert uniform(seed, position) == first_word / WORD


def test_uniform_numbers_are_uniform_and_unrelated() -> None:
    over_positions = [uniform(3, position) for position in range(4000)]
    over_seeds = [uniform(seed, 17) for seed in range(4000)]
    for numbers in (over_positions, over_seeds):
        tenths = [sum(int(10 * number) == tenth for number in numbers) for tenth in range(10)]
        assert chi_square_p(tenths, [400.0] * 10) > 0.01
    pairs = [int(4 * a) * 4 + int(4 * b) for a, b in zip(over_positions[::2], over_positions[1::2], strict=True)]
    assert chi_square_p([pairs.count(cell) for cell in range(16)], [125.0] * 16) > 0.01


def brute_force_probabilities(logits: list[float], temperature: float, top_k: int, top_p: float) -> list[float]:
    """The definition, token by token: k largest, softmax, smallest nucleus that reaches p, renormalise."""
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    kept = order[:top_k] if top_k else order
    top = logits[order[0]]
    weight = {i: 2.718281828459045 ** ((logits[i] - top) / temperature) for i in kept}
    total = sum(weight.values())
    nucleus, reached = [], 0.0
    for i in kept:
        if reached >= top_p:
            break
        nucleus.append(i)
        reached += weight[i] / total
    mass = sum(weight[i] for i in nucleus)
    return [weight[i] / mass if i in nucleus else 0.0 for i in range(len(logits))]


@pytest.mark.parametrize("temperature", [0.1, 0.8, 2.0])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (1, 1.0), (5, 1.0), (0, 0.3), (0, 0.95), (8, 0.7), (999, 0.5)])
def test_distribution_by_brute_force(temperature: float, top_k: int, top_p: float) -> None:
    logits = 3 * torch.randn(6, 40, generator=torch.Generator().manual_seed(1))
    actual = target_probabilities(logits, temperature, top_k, top_p)
    for row in range(6):
        expected = brute_force_probabilities(logits[row].tolist(), temperature, top_k, top_p)
        assert actual[row].tolist() == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(actual.sum(dim=-1), torch.ones(6, dtype=torch.float64), atol=1e-12, rtol=0)


def test_ties() -> None:
    """Equal logits at the edge: top-k and top-p keep them all, the argmax is the lowest id."""
    logits = torch.tensor([[0.0, 2.0, 2.0, 2.0, 1.0]])
    kept_by_k = target_probabilities(logits, 1.0, top_k=2).flatten() > 0
    assert kept_by_k.tolist() == [False, True, True, True, False]
    kept_by_p = target_probabilities(logits, 1.0, top_p=0.5).flatten() > 0
    assert kept_by_p.tolist() == [False, True, True, True, False]
    assert sample(logits, 0, temperature=0).ids == [1]


def test_a_nucleus_is_never_empty() -> None:
    sure = torch.tensor([[0.0, 500.0, 0.0]])
    assert target_probabilities(sure, 1.0, top_p=1e-9).flatten().tolist() == [0.0, 1.0, 0.0]
    assert sample(torch.tensor([[0.0, 1.0, 0.5]]), 3, temperature=1.0, top_p=1e-9, seed=5).ids == [1]


def test_a_token_owns_its_share_of_the_unit_interval() -> None:
    """Sampling inverts the cumulative distribution: exactly the tokens whose interval holds the number."""
    logits = torch.randn(1, 12, generator=torch.Generator().manual_seed(2))
    share = target_probabilities(logits, 0.9).flatten().tolist()
    for position in range(500):
        number = Fraction(uniform(7, position))
        end, owner = Fraction(0), -1
        while number >= end:
            owner += 1
            end += Fraction(share[owner])
        assert sample(logits, position, temperature=0.9, seed=7).ids == [owner]


def test_zero_probability_is_never_sampled() -> None:
    logits = torch.tensor([[-200.0, 1.0, -200.0, 1.0, -200.0]]).repeat(2000, 1)
    assert set(sample(logits, 0, temperature=1.0, top_k=2, seed=1).ids) == {1, 3}


def test_the_number_zero_skips_tokens_without_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.sampling.sampling.uniform", lambda seed, position: 0.0)
    assert sample(torch.tensor([[0.0, 0.0, 5.0, 4.0]]), 0, temperature=1.0, top_k=2).ids == [2]


def test_rows_are_sampled_as_if_alone() -> None:
    logits = torch.randn(16, 50, generator=torch.Generator().manual_seed(3))
    together = sample(logits, 40, temperature=1.2, top_k=20, top_p=0.9, seed=11).ids
    alone = [sample(logits[i : i + 1], 40 + i, temperature=1.2, top_k=20, top_p=0.9, seed=11).ids[0] for i in range(16)]
    assert together == alone


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (6, 1.0), (0, 0.8), (6, 0.8)])
def test_samples_follow_the_distribution(top_k: int, top_p: float) -> None:
    logits: Tensor = 1.5 * torch.randn(1, 16, generator=torch.Generator().manual_seed(4))
    count = 8000
    drawn = sample(logits.repeat(count, 1), 0, temperature=0.8, top_k=top_k, top_p=top_p, seed=99).ids
    expected = (count * target_probabilities(logits, 0.8, top_k, top_p)).flatten().tolist()
    assert chi_square_p([drawn.count(token) for token in range(16)], expected) > 0.01


def test_greedy_is_the_argmax() -> None:
    logits = torch.randn(5, 30, generator=torch.Generator().manual_seed(5))
    assert sample(logits, 0, temperature=0, top_k=3, top_p=0.1, seed=8).ids == logits.argmax(dim=-1).tolist()


@pytest.mark.parametrize(
    ("draft", "sampled", "accepted"),
    [([], [5], 0), ([5], [5, 6], 1), ([4], [5, 6], 0), ([1, 2, 3], [1, 2, 9, 4], 2), ([1, 9, 3], [1, 2, 3, 4], 1)],
)
def test_acceptance_ends_at_the_first_difference(draft: list[int], sampled: list[int], accepted: int) -> None:
    assert num_agreed(draft, sampled) == accepted
