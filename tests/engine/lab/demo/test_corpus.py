"""What holds for every domain of the corpus, and the checks, prompt noise and thoughts of the smaller ones."""

from __future__ import annotations

import random
import re
from types import ModuleType

import pytest

from engine.lab.demo.corpus import chat, code, edit, explain, follow, html, maths, screen, unknown
from engine.lab.demo.corpus.noise import noisy
from engine.lab.demo.corpus.sample import Sample
from engine.lab.demo.corpus.thinking import thought
from engine.lab.demo.corpus.wording import count_wordings, phrase

LONGEST = {chat: 400, unknown: 400, screen: 300, explain: 900, maths: 320, code: 2000, html: 2650}
"""Characters of an answer. Those of a page are about 960 tokens: it ends within 1024."""
PLAIN = (chat, unknown, screen, explain, maths)
"""Those that answer in sentences."""


def draws(module: ModuleType, count: int, seed: int = 0) -> list[Sample]:
    rng = random.Random(seed)
    return [module.generate(rng) for _ in range(count)]


@pytest.mark.parametrize("module", LONGEST)
def test_same_seed_same_samples(module: ModuleType) -> None:
    assert draws(module, 100, 3) == draws(module, 100, 3)
    assert draws(module, 100, 3) != draws(module, 100, 4)


@pytest.mark.parametrize("module", PLAIN)
def test_every_sample_passes_its_own_check(module: ModuleType) -> None:
    for sample in draws(module, 5000):
        verdicts = module.check(sample.response, sample.check)
        assert all(verdicts.values()), (verdicts, sample)


@pytest.mark.parametrize("module", LONGEST)
def test_text_is_plain_and_short(module: ModuleType) -> None:
    for sample in draws(module, 1000):
        text = sample.prompt + sample.response
        assert "\t" not in text and sample.prompt.strip()
        assert text.isascii() or module is screen or sample.check.get("family") == "greeting"
        assert module not in PLAIN or not re.search(r"[{}\[\]|]|  ", text), sample
        assert len(sample.prompt) < 400 and len(sample.response) <= LONGEST[module]


def test_checks_of_small_talk_reject_broken_answers() -> None:
    facts = {"keywords": ["hello"]}
    assert chat.check("Hello there!", facts) == {"says_something": True, "ends": True, "fits": True}
    assert chat.check("Hello there", facts)["ends"] is False
    assert chat.check("Goodbye.", facts)["fits"] is False
    assert chat.check("  ", {}) == {"says_something": False, "ends": False, "fits": False}
    assert unknown.check("Everest is the tallest mountain.", {})["admits"] is False
    assert unknown.check("I am a tiny demo model of", {})["ends"] is False
    assert unknown.check("", {}) == {"admits": False, "ends": False}


def test_checks_of_explanations_reject_wrong_answers() -> None:
    facts = {"keywords": ["stack", "last", "first", "top"], "form": "bullets", "sentences": 2}
    assert all(explain.check("- The last is on top.\n- A stack pops the top.", facts).values())
    assert explain.check("The last is on top. A stack pops the top.", facts)["form"] is False
    assert explain.check("- Paris is in France.\n- Rome is not.", facts)["on_topic"] is False
    assert explain.check("- The last is on top.\n- A stack", facts)["ends"] is False
    assert explain.check("", {}) == {"on_topic": False, "ends": False, "form": False}


def test_phrase_resolves_choices_and_slots() -> None:
    rng = random.Random(0)
    texts = {phrase(rng, "[a|b] {x}[!|]", x="[z]") for _ in range(100)}
    assert texts == {"a [z]!", "a [z]", "b [z]!", "b [z]"}
    assert count_wordings(("[a|b] c[d|]", "e")) == 5


@pytest.mark.parametrize(
    ("prompt", "values"),
    [
        (
            "Write a page of 60 drones titled \"Night Flight, Please\" and call it 'Write It' for Mia. Use `Make_it`.",
            ("60", '"Night Flight, Please"', "'Write It'", "`Make_it`", "Mia"),
        ),
        (
            "Write a function named write_page that sorts [3, 1, 2] with #ff8800 and 3.5 in-place",
            ("write_page", "[3, 1, 2]", "#ff8800", "3.5", "in-place"),
        ),
        ("17 * 6 + 2", ("17 * 6 + 2",)),
    ],
)
def test_values_survive_noise(prompt: str, values: tuple[str, ...]) -> None:
    texts = [noisy(random.Random(seed), prompt) for seed in range(500)]
    assert texts == [noisy(random.Random(seed), prompt) for seed in range(500)] and len(set(texts)) > 3
    assert all(value in text for text in texts for value in values)


def test_numbers_of_real_prompts_survive() -> None:
    rng = random.Random(0)
    for _ in range(2000):
        prompt = maths.generate(rng).prompt
        assert re.findall(r"\d+", noisy(rng, prompt)) == re.findall(r"\d+", prompt)


def test_thoughts_are_short_plans() -> None:
    rng = random.Random(0)
    thoughts = [thought(rng, generate(rng)) for generate in (maths.generate, chat.generate, unknown.generate) * 300]
    texts = [text for text in thoughts if text is not None]
    assert len(texts) > 800
    assert all(text.endswith(".") and len(text) < 240 and "\n" not in text for text in texts)


@pytest.mark.parametrize("name", edit.TASKS)
def test_every_edit_can_be_told_from_its_file(name: str) -> None:
    """The wished-for text passes, and the file as it was doesn't, unless the wish is to repeat it."""
    rng = random.Random(name)
    for _ in range(40):
        sample = edit.generate_task(rng, name)
        assert all(edit.check(sample.response, sample.check).values()), sample
        copied = all(
            word in sample.prompt + "".join(prompt for prompt, _ in sample.before)
            for word in sample.check["result"].split("\n")[:1]
        )
        assert copied or name not in ("repeat", "repeat_text"), sample
        assert not edit.check(sample.response.replace(sample.check["result"], "x"), sample.check)["exact"]


def test_follow_ups_change_what_was_wished_for_and_keep_the_rest() -> None:
    rng = random.Random(1)
    kinds = set()
    for _ in range(60):
        sample = follow.generate(rng)
        if "says" in sample.check:
            continue
        kinds.add(sample.check["kind"])
        assert all(follow.check(sample.response, sample.check).values()), sample
        before = follow.check(sample.before[-1][1], sample.check)
        assert not before["changed"] or not sample.check["changed"], sample
    assert kinds == {"html", "code"}


def test_products_of_two_digits_are_worked_out() -> None:
    rng = random.Random(2)
    prompts = [sample.prompt for sample in draws(maths, 4000)]
    assert any(re.search(r"\b\d\d ?[*x] ?\d\d\b", prompt) for prompt in prompts)
    assert not any(re.search(r"(?<![\d.])\d\d ?[*x] ?\d\d(?!\d)", unknown.generate(rng).prompt) for _ in range(4000))
