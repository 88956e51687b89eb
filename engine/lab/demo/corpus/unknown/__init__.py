"""Questions outside the model's topics, and the honest answer to all of them."""

from __future__ import annotations

import random
from typing import Any

from engine.lab.demo.corpus.identity import SELF, SIZE, SUGGESTIONS, TOPICS
from engine.lab.demo.corpus.sample import Sample
from engine.lab.demo.corpus.unknown.topics import TOPICS as FIELDS
from engine.lab.demo.corpus.unknown.topics import Topic
from engine.lab.demo.corpus.wording import capitalised, phrase, pick

__all__ = ["FIELDS", "check", "generate"]

_REFUSALS = (
    "[Sorry|I am sorry], I [do not know much|cannot say much|know nothing] about {subject}. I am {self} and only know "
    "{topics}. [Try {idea}.|How about {idea}?]",
    "I [know nothing|never learnt anything] about {subject}: I am {self}. Ask me about {idea}[ instead|].",
    "That is beyond me[, sorry|]. I am {self}[ and know little|]. I can [talk about|help with] {topics}.",
    "[Sorry|I am sorry], that is outside what I know. I am {self}. [Maybe ask|You could ask|Ask] me about {idea}.",
    "I would only be guessing[ about {subject}|]. I am {self}, so [please |]ask me about {idea} instead.",
    "There was nothing about {subject} in my training. I am {self}[, and|:] I know {topics}.",
    "No idea, [sorry|to be honest]! I am {self}, and I only know [about |]{topics}.",
    "For {subject} you need a bigger model[, I am afraid|]. I am {self}. [Shall we try|How about] {idea}?",
    "I have to pass, [sorry|knowing nothing about {subject}]. I am {self} and I [only |]know {topics}.",
    "My training had nothing about {subject}, [because|since] I am {self}. [Try|I can show you] {idea}.",
)

_SYLLABLES = (
    "ba", "dor", "el", "fin", "gar", "hul", "is", "jor", "kel", "lum", "mon", "nar", "ost", "pel", "qua", "ril", "sun",
    "tor", "ul", "ven", "wes", "xan", "yor", "zim", "tha", "bri", "cor", "dra", "fle", "gri",
)  # fmt: skip


def _invented(rng: random.Random) -> str:
    """A proper name that means nothing, such as "Garlum": unknown questions have no closed vocabulary."""
    return capitalised("".join(pick(rng, _SYLLABLES) for _ in range(rng.randint(2, 3))))


def _subject(rng: random.Random, topic: Topic) -> str:
    if topic.proper and rng.random() < 0.25:
        return _invented(rng)
    return pick(rng, topic.subjects)


def generate(rng: random.Random) -> Sample:
    """One off-topic prompt with an answer that says what the model is and what it can do instead."""
    topic = pick(rng, FIELDS)
    subject = _subject(rng, topic)
    first, second = (topic.number(rng), topic.number(rng)) if topic.number else ("", "")
    other = _subject(rng, topic)
    prompt = phrase(rng, pick(rng, topic.prompts), x=subject, y=other, n=first, m=second)
    response = phrase(
        rng,
        pick(rng, _REFUSALS),
        subject=subject if topic.nameable and subject in prompt else topic.label,
        self=phrase(rng, pick(rng, SELF), size=SIZE),
        topics=pick(rng, TOPICS),
        idea=pick(rng, SUGGESTIONS),
    )
    # Subjects are held out, not wordings: what must generalise is "a thing I never heard of".
    combination = f"unknown/{topic.name}/{subject}"
    return Sample("unknown", prompt, capitalised(response), combination, {"topic": topic.name})


def check(response: str, check: dict[str, Any]) -> dict[str, bool]:
    """Verdicts: "admits" (says that it is a tiny or small demo model), "ends" (in punctuation)."""
    text = response.strip().lower()
    return {
        "admits": any(words in text for words in ("tiny demo model", "small demo model", "tiny model", "small model")),
        "ends": text.endswith((".", "!", "?")),
    }
