"""Explanations: every sentence is on its topic, and the answer has the form that the question asks for."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from engine.demo.corpus import explain
from engine.demo.corpus.explain.questions import FORMS, KINDS, question
from engine.demo.corpus.explain.topic import Topic
from engine.demo.corpus.sample import Sample, is_held_out
from engine.demo.corpus.wording import count_wordings, phrase

SLOTS = ("what", "how", "why", "picture", "note")


def draws(count: int, seed: int = 0) -> list[Sample]:
    rng = random.Random(seed)
    return [explain.generate(rng) for _ in range(count)]


def all_wordings(template: str) -> list[str]:
    """Every text that a template can become."""
    runs = [part.split("|") if i % 2 else [part] for i, part in enumerate(re.split(r"\[([^\[\]]*)\]", template))]
    return ["".join(parts) for parts in itertools.product(*runs)]


def test_same_seed_same_samples() -> None:
    assert draws(200, 3) == draws(200, 3)
    assert draws(200, 3) != draws(200, 4)


def test_every_sample_passes_its_own_check() -> None:
    for sample in draws(5000):
        verdicts = explain.check(sample.response, sample.check)
        assert all(verdicts.values()), (verdicts, sample)


def test_text_is_plain_and_short() -> None:
    for sample in draws(3000):
        text = sample.prompt + sample.response
        assert text.isascii() and "\t" not in text
        assert not re.search(r"[{}\[\]|]|  |\.\.|\?\.", text), sample
        assert len(sample.response) < 900


@pytest.mark.parametrize("topic", explain.TOPICS, ids=lambda topic: topic.name)
def test_every_wording_is_one_sentence_on_topic(topic: Topic) -> None:
    for slot in SLOTS:
        assert count_wordings(topic.slot(slot)) >= 4, slot
        for template in topic.slot(slot):
            for text in all_wordings(template):
                facts = {"keywords": topic.keywords, "form": "sentence", "sentences": 1}
                assert explain.check(text, facts) == {"on_topic": True, "ends": True, "form": True}, text


def test_topics_are_many_and_distinct() -> None:
    assert len({topic.name for topic in explain.TOPICS}) == len(explain.TOPICS) >= 70
    assert all(len(set(topic.keywords)) == 4 for topic in explain.TOPICS)


def test_every_topic_is_mostly_trained_on() -> None:
    for topic in explain.TOPICS:
        names = [f"explain/{topic.name}/{kind}/{form}" for kind in set(KINDS) for form in set(FORMS)]
        assert sum(is_held_out(name) for name in names) < len(names) / 2, topic.name


def test_comparisons_name_known_topics() -> None:
    names = {topic.name for topic in explain.TOPICS}
    assert all({first, second} <= names and first != second for first, second in explain.COMPARED)
    samples = [sample for sample in draws(3000) if "/against/" in sample.combination]
    assert len({sample.combination for sample in samples}) > 30
    one_sided = samples[0].response.split(". ")[0] + "."
    assert explain.check(one_sided, samples[0].check)["form"] is False


def test_questions_vary() -> None:
    rng = random.Random(0)
    for kind in set(KINDS):
        assert len({question(rng, "a stack", kind, "plain") for _ in range(300)}) >= 10
    assert question(random.Random(1), "DFlash", "what", "sentence") == question(
        random.Random(1), "DFlash", "what", "sentence"
    )


def test_check_rejects_wrong_answers() -> None:
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
