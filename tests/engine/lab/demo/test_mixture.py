"""What the pair trains on: shares, held-out combinations, headline prompts."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from engine.lab.demo.conversation import Conversation, Turn, encode
from engine.lab.demo.files import PAIR
from engine.lab.demo.headlines import HEADLINE_PROMPTS, HeadlineGuard
from engine.lab.demo.mixture import TOKEN_SHARES, Mixture, load_generators
from engine.lab.demo.tokenizer import load_tokenizer


@pytest.fixture(scope="module")
def mixture() -> Mixture:
    return Mixture(load_tokenizer(PAIR / "target"), load_generators())


def test_every_domain_has_its_share_of_tokens(mixture: Mixture) -> None:
    rng = random.Random(1)
    tokens: Counter[str] = Counter()
    for _ in range(4000):
        sample = mixture.sample(rng)
        tokens[sample.domain] += len(mixture.tokenizer.encode(sample.response, add_special_tokens=False).ids)
    assert set(tokens) == set(TOKEN_SHARES)
    for domain, share in TOKEN_SHARES.items():
        assert tokens[domain] / tokens.total() == pytest.approx(share, abs=0.35 * share + 0.01)


def test_training_never_draws_what_is_held_out(mixture: Mixture) -> None:
    rng = random.Random(2)
    assert not any(mixture.sample(rng).held_out for _ in range(500))
    assert all(mixture.of_domain(rng, domain, held_out=True).held_out for domain in mixture.domains)


def test_conversations_follow_the_seed(mixture: Mixture) -> None:
    first, second = ([mixture.conversation(random.Random(s)) for s in range(20)] for _ in range(2))
    assert first == second
    assert len({conversation.turns[0].prompt for conversation in first}) > 10


def test_headlines_and_their_like_are_kept_from_the_drafter(mixture: Mixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what the mixture offers, headline prompts and answers close to a headline's answer don't come through."""
    guard = HeadlineGuard(["one\ntwo\nthree\nfour"])
    other = Conversation((Turn("Write a bubble sort in Python", "one\ntwo\n\n  five"),))
    headline = Conversation((Turn("write a quicksort in python!", "no"),))
    near = Conversation((Turn("Hello", "Hi!"), Turn("Sort it", "four\n  two\nthree\nseven")))
    offers = iter([headline, other, near, headline, other])
    monkeypatch.setattr(mixture, "conversation", lambda rng: next(offers))
    drawn = [mixture.encoded_if(guard.allows, random.Random(0)) for _ in range(2)]
    assert drawn == [encode(mixture.encoder, other)] * 2


@pytest.mark.parametrize("prompt", HEADLINE_PROMPTS)
def test_the_corpus_contains_the_headlines(mixture: Mixture, prompt: str) -> None:
    generate = mixture.generators["html" if "HTML" in prompt else "code"].generate
    rng = random.Random(5)
    assert any(generate(rng).prompt == prompt for _ in range(60_000))
