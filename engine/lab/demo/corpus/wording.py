"""Sentences with choices: "[The|This] drafter [guesses|proposes] {count} tokens." """

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import TypeVar

T = TypeVar("T")

_CHOICE = re.compile(r"\[([^\[\]]*)\]")

_Parts = tuple[tuple[str, ...], ...]


@cache
def _parts(template: str) -> _Parts:
    """Splits a template into runs of alternatives; plain text is a run with one alternative."""
    pieces = _CHOICE.split(template)  # odd entries are the insides of brackets
    return tuple(tuple(piece.split("|")) if i % 2 else (piece,) for i, piece in enumerate(pieces))


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """A uniform choice; `rng.choice` without its generality, for speed."""
    return options[int(rng.random() * len(options))]


def phrase(rng: random.Random, template: str, **slots: object) -> str:
    """Resolves every "[a|b]" at random, then fills the "{name}" slots."""
    text = "".join(pick(rng, run) for run in _parts(template))
    return text.format(**slots) if slots else text


def count_wordings(templates: Sequence[str]) -> int:
    """How many different texts the templates can produce together (before slots are filled)."""
    return sum(prod(len(run) for run in _parts(template)) for template in templates)


def capitalised(text: str) -> str:
    """The text with its first letter in upper case and the rest untouched."""
    return text[:1].upper() + text[1:]
