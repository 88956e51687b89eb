"""The text as its own drafter: what came next where its newest tokens stood before. People edit, quote and continue, so
much of an answer already stands in prompt and history. Standard library only: the definition, which ``text_index`` and
``kernels.round.lookup`` equal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

SHORTEST, LONGEST = 3, 32
"""Tokens of a match. Shorter ones say too little; of longer ones it does not matter by how much."""


class Found(NamedTuple):
    """The longest earlier occurrence of a text's newest tokens; of equally long ones the most recent."""

    length: int
    """Tokens that stand in both places, up to ``LONGEST``."""
    distance: int
    """So many tokens back; less than ``length`` where the two overlap."""


class Looked(NamedTuple):
    """A chain that was looked up, as a policy sees it."""

    length: int
    """Of the match; each token that turns out right makes it longer by one."""
    size: int
    """Tokens of the chain."""
    agreed: int = 0
    """So many of its first tokens the drafter guessed, too."""
    choices: tuple[int, ...] = ()
    """Where it may enter a tree: by position, which of the drafter's choices it is, ``trees.LOOKED_UP`` for none."""


def longest_match(text: Sequence[int]) -> Found | None:
    """By comparing every place: slow, and plain to see."""
    best: Found | None = None
    for distance in range(1, len(text)):
        length = 0
        while length < min(LONGEST, len(text) - distance) and text[-1 - length] == text[-1 - length - distance]:
            length += 1
        if length >= SHORTEST and (best is None or length > best.length):
            best = Found(length, distance)
    return best


def continuation(text: Sequence[int], distance: int, count: int, stops: Collection[int] = ()) -> list[int]:
    """Up to ``count`` tokens that came next ``distance`` back, the last a stop token if there is one. Behind the text's
    end stands the continuation itself, so a text with a period goes on with it."""
    found: list[int] = []
    while len(found) < count and not (found and found[-1] in stops):
        place = len(text) - distance + len(found)
        found.append(text[place] if place < len(text) else found[place - len(text)])
    return found


def num_agreed(one: Sequence[int], other: Sequence[int]) -> int:
    """How many first tokens both have: of a draft and what the target says, so many are accepted."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
