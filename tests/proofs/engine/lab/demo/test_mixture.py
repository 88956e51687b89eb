"""What the pair trains on: shares, conversations, careless prompts, headline prompts."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from engine.lab.demo.model.files import PAIR
from engine.lab.demo.model.tokenizer import load_tokenizer
from engine.lab.demo.texts.conversation import TextTurn, TrainingText, encode
from engine.lab.demo.texts.exchanges import TextExchange
from engine.lab.demo.texts.headlines import HeadlineGuard
from engine.lab.demo.texts.mixture import TOKEN_SHARES, Mixture
from engine.lab.demo.texts.noise import noisy
from engine.lab.demo.texts.thinking import thought


@pytest.fixture(scope="module")
def mixture() -> Mixture:
    return Mixture(load_tokenizer(PAIR / "target"))


def test_every_domain_has_its_share_of_tokens(mixture: Mixture) -> None:
    rng = random.Random(1)
    tokens: Counter[str] = Counter()
    for _ in range(4000):
        exchange = mixture.exchange(rng)
        tokens[exchange.domain] += len(mixture.tokenizer.encode(exchange.response, add_special_tokens=False).ids)
    assert set(tokens) == set(TOKEN_SHARES)
    for domain, share in TOKEN_SHARES.items():
        assert tokens[domain] / tokens.total() == pytest.approx(share, abs=0.35 * share + 0.01)


def test_conversations_follow_the_seed(mixture: Mixture) -> None:
    first, second = ([mixture.conversation(random.Random(s)) for s in range(20)] for _ in range(2))
    assert first == second
    assert len({conversation.turns[0].prompt for conversation in first}) > 10


def test_headlines_and_their_like_are_kept_from_the_drafter(mixture: Mixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what the mixture offers, headline prompts and answers close to a headline's answer don't come through."""
    guard = HeadlineGuard(["one\ntwo\nthree\nfour"])
    other = TrainingText((TextTurn("Write a bubble sort in Python", "one\ntwo\n\n  five"),))
    headline = TrainingText((TextTurn("write a quicksort in python!", "no"),))
    near = TrainingText((TextTurn("Hello", "Hi!"), TextTurn("Sort it", "four\n  two\nthree\nseven")))
    offers = iter([headline, other, near, headline, other])
    monkeypatch.setattr(mixture, "conversation", lambda rng: next(offers))
    drawn = [mixture.encoded_if(guard.allows, random.Random(0)) for _ in range(2)]
    assert drawn == [encode(mixture.encoder, other)] * 2


def test_careless_prompts_keep_what_an_answer_copies() -> None:
    rng = random.Random(4)
    prompt = 'Please write a function called `merge_lists` with the title "Night Sky" and 47 pens.'
    typed = {noisy(rng, prompt) for _ in range(200)}
    assert len(typed) > 20
    assert all("`merge_lists`" in each and '"Night Sky"' in each and "47 pens" in each for each in typed)


def test_a_thought_repeats_a_short_prompt_and_no_long_one() -> None:
    rng = random.Random(4)
    thoughts = {thought(rng, TextExchange("maths", "What is 2 + 3?", "")) for _ in range(30)}
    assert len(thoughts) > 3 and all(each and '"What is 2 + 3?"' in each and "[" not in each for each in thoughts)
    assert thought(rng, TextExchange("chat", "word " * 40, "")) is None
