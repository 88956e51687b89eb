"""Prompt noise and thoughts: they change how a request looks, never what it asks for."""

from __future__ import annotations

import random
import re

from engine.demo.corpus import chat, maths, unknown
from engine.demo.corpus.noise import noisy
from engine.demo.corpus.thinking import thought

PROMPT = "Write a page with 60 drones titled \"Night Flight, Please\" and call it 'Write It' for Mia. Use `Make_this`."


def test_same_seed_same_noise() -> None:
    first = [noisy(random.Random(seed), PROMPT) for seed in range(50)]
    assert first == [noisy(random.Random(seed), PROMPT) for seed in range(50)]
    assert len(set(first)) > 20


def test_values_survive() -> None:
    for seed in range(500):
        text = noisy(random.Random(seed), PROMPT)
        for value in ("60", '"Night Flight, Please"', "'Write It'", "`Make_this`", "Mia"):
            assert value in text, text


def test_identifiers_colours_and_lists_survive() -> None:
    prompt = "Write a function named write_page that sorts [3, 1, 2] with #ff8800 and 3.5 in-place"
    for seed in range(300):
        text = noisy(random.Random(seed), prompt)
        for value in ("write_page", "[3, 1, 2]", "#ff8800", "3.5", "in-place"):
            assert value in text, text


def test_numbers_of_real_prompts_survive() -> None:
    rng = random.Random(0)
    for _ in range(2000):
        prompt = maths.generate(rng).prompt
        assert re.findall(r"\d+", noisy(rng, prompt)) == re.findall(r"\d+", prompt)


def test_names_survive() -> None:
    rng = random.Random(0)
    family = next(family for family in chat.FAMILIES if family.uses_name)
    for template in (*family.core, *family.prompts):
        for _ in range(20):
            assert "Quinn" in noisy(rng, template.format(name="Quinn"))


def test_every_flaw_occurs() -> None:
    texts = [noisy(random.Random(seed), "Please explain how the cache works?") for seed in range(400)]
    assert any(text.startswith("please explain") for text in texts)
    assert any(not text.endswith("?") for text in texts)
    assert any(not re.search("explain|Explain", text) for text in texts)
    assert any(re.match("hey|ok|so", text) for text in texts)


def test_expressions_stay_whole() -> None:
    for seed in range(300):
        assert re.fullmatch(r"[a-z ,:]*17 \* 6 \+ 2[a-z ,:)]*", noisy(random.Random(seed), "17 * 6 + 2"))
        assert noisy(random.Random(seed), "???") == "???"


def test_thoughts_are_short_plans() -> None:
    rng = random.Random(0)
    thoughts = [thought(rng, generate(rng)) for generate in (maths.generate, chat.generate, unknown.generate) * 300]
    texts = [text for text in thoughts if text is not None]
    assert len(texts) > 800
    for text in texts:
        assert text.isascii() and text.endswith(".") and len(text) < 240 and "\n" not in text
        assert not re.search(r"[{}\[\]|]", text)
