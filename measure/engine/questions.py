"""Questions for SmolLM2: two hundred, and the hundred among them that its drafter never saw while it was trained."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

FORMS = (
    "What is {}?",
    "Tell me something about {}.",
    "Write two sentences about {} for a child.",
    "Give me three facts about {}.",
    "Why do people like {}?",
    "Write a short poem about {}.",
    "How would you explain {} to a friend?",
    "List five words that have to do with {}.",
    "What is the opposite of {}?",
    "Write a Python function whose name is about {}.",
)
TOPICS = (
    "the sea", "a bicycle", "gravity", "bread", "the Moon", "music", "a prime number", "rain", "chess", "a library",
    "photosynthesis", "coffee", "a dictionary", "trains", "winter", "sorting a list", "cats", "the colour blue", "time",
    "an engine",
)  # fmt: skip


def questions(count: int) -> list[str]:
    """The first ``count`` of 200 questions, the same every time."""
    return [form.format(topic) for topic, form in islice(product(TOPICS, FORMS), count)]


def held_out(count: int) -> Iterator[tuple[str, str]]:
    """Yields (form, question) for the first ``count`` of 100: every other form, about every topic."""
    yield from islice(((form, form.format(topic)) for topic, form in product(TOPICS, FORMS[::2])), count)
