"""What there is to say about a topic."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic in five sentence slots. Every sentence stands alone, so that the slots combine in any order."""

    name: str
    term: str
    """How a question names it, in the singular: "a hash table"."""
    keywords: tuple[str, ...]
    """Four lower-case word stems; every sentence contains at least two of them."""
    what: tuple[str, ...]
    how: tuple[str, ...]
    why: tuple[str, ...]
    picture: tuple[str, ...]
    note: tuple[str, ...]

    def slot(self, name: str) -> tuple[str, ...]:
        """The wordings of a slot by its name."""
        wordings: tuple[str, ...] = getattr(self, name)
        return wordings


def topic(name: str, term: str, keywords: str, **slots: tuple[str, ...]) -> Topic:
    """A topic whose keywords are written as one string."""
    return Topic(name, term, tuple(keywords.split()), **slots)
