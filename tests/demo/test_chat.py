"""Small talk and refusals: varied, in character, and honest about what the model is."""

from __future__ import annotations

import random
import re
from types import ModuleType

import pytest

from engine.demo.corpus import chat, unknown
from engine.demo.corpus.sample import Sample, is_held_out
from engine.demo.corpus.wording import count_wordings

GENERATORS = (chat, unknown)


def draws(module: ModuleType, count: int, seed: int = 0) -> list[Sample]:
    rng = random.Random(seed)
    return [module.generate(rng) for _ in range(count)]


@pytest.mark.parametrize("module", GENERATORS)
def test_same_seed_same_samples(module: ModuleType) -> None:
    assert draws(module, 100, 3) == draws(module, 100, 3)
    assert draws(module, 100, 3) != draws(module, 100, 4)


@pytest.mark.parametrize("module", GENERATORS)
def test_every_sample_passes_its_own_check(module: ModuleType) -> None:
    for sample in draws(module, 5000):
        verdicts = module.check(sample.response, sample.check)
        assert all(verdicts.values()), (verdicts, sample)


@pytest.mark.parametrize("module", GENERATORS)
def test_text_is_plain_and_short(module: ModuleType) -> None:
    for sample in draws(module, 3000):
        text = sample.prompt + sample.response
        assert text.isascii() and "\t" not in text and sample.prompt.strip()
        assert not re.search(r"[{}\[\]|]|  ", text), sample
        assert sample.response[0].isupper() or sample.response[0].isdigit()
        assert len(sample.response) < 400


def test_all_chat_families_occur_with_many_wordings() -> None:
    seen = {sample.check["family"] for sample in draws(chat, 2000)}
    assert seen == {family.name for family in chat.FAMILIES}
    for family in chat.FAMILIES:
        assert count_wordings((*family.core, *family.prompts)) >= 10, family.name
        assert count_wordings(family.replies) >= 4, family.name


def test_plain_wordings_are_trained_on() -> None:
    for family in chat.FAMILIES:
        if not family.uses_name:
            assert not is_held_out(f"chat/{family.name}/core"), family.name


def test_names_are_repeated() -> None:
    named = [sample for sample in draws(chat, 4000) if sample.check["family"] == "name"]
    assert len({sample.combination for sample in named}) > 50
    for sample in named:
        name = sample.combination.rsplit("/", 1)[1]
        assert name in sample.prompt and name in sample.response
        assert not chat.check(sample.response.replace(name, "you"), sample.check)["fits"]


def test_refusals_cover_many_subjects_and_invented_names() -> None:
    samples = draws(unknown, 5000)
    assert {sample.check["topic"] for sample in samples} == {topic.name for topic in unknown.FIELDS}
    assert len({sample.prompt for sample in samples}) > 3000
    assert len({sample.combination for sample in samples}) > 800
    assert 0.08 < sum(sample.held_out for sample in samples) / len(samples) < 0.22


def test_checks_reject_broken_answers() -> None:
    facts = {"keywords": ["hello"]}
    assert chat.check("Hello there!", facts) == {"says_something": True, "ends": True, "fits": True}
    assert chat.check("Hello there", facts)["ends"] is False
    assert chat.check("Goodbye.", facts)["fits"] is False
    assert chat.check("  ", {}) == {"says_something": False, "ends": False, "fits": False}
    assert unknown.check("Everest is the tallest mountain.", {})["admits"] is False
    assert unknown.check("I am a tiny demo model of", {})["ends"] is False
    assert unknown.check("", {}) == {"admits": False, "ends": False}
