"""The text as its own drafter: what followed where its newest tokens stood before. People edit, quote and continue, so
much of an answer already stands in prompt and history. Standard library only: the definition, which ``text_index`` and
``kernels.round.lookup`` equal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ..events import Match

SHORTEST, LONGEST = 3, 32
"""The fewest and the most tokens of a match. Shorter ones say too little; of longer ones it does not matter how long
they are."""


class LookedUpChain(NamedTuple):
    """A chain that was looked up, as a policy sees it."""

    length: int
    """How many tokens the match has; each token of the chain that turns out right makes it longer by one."""
    size: int
    """How many tokens the chain has."""
    agreed: int = 0
    """How many of its tokens, from the first on, the drafter guessed, too."""
    choices: tuple[int, ...] = ()
    """Where it may enter a tree, by position: which of the drafter's choices each token is, ``trees.LOOKED_UP`` for
    none."""
    candidates: tuple[int, ...] = ()
    """There, which of the drafter's candidates each token is: ``trees.LookupBranch.candidates``."""


def longest_match(text: Sequence[int]) -> Match | None:
    """The longest earlier occurrence of the text's newest tokens, found by comparing every place: slow, and plain to
    see. None for one shorter than ``SHORTEST``."""
    best: Match | None = None
    for distance in range(1, len(text)):
        length = 0
        while length < min(LONGEST, len(text) - distance) and text[-1 - length] == text[-1 - length - distance]:
            length += 1
        if length >= SHORTEST and (best is None or length > best.length):
            best = Match(length, distance)
    return best


def continuation(text: Sequence[int], distance: int, count: int, stops: Collection[int] = ()) -> list[int]:
    """Up to ``count`` tokens that followed ``distance`` tokens back, up to the first of ``stops``. Where the text ends
    the continuation itself goes on, so a periodic text is continued: ``continuation([1, 2], 2, 3)`` is ``[1, 2,
    1]``."""
    ids: list[int] = []
    while len(ids) < count and not (ids and ids[-1] in stops):
        position = len(text) - distance + len(ids)
        ids.append(text[position] if position < len(text) else ids[position - len(text)])
    return ids


def num_agreed(one: Sequence[object], other: Sequence[object]) -> int:
    """How many elements two sequences share from the first on. Of a draft and the target's samples, that many are
    accepted."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
