"""Texts to edit: programs, prose, lists, tables and settings, with names that nobody has seen before.

Names are random, so that an answer can only be right by copying them from the prompt.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from engine.lab.demo.corpus.code.values import split
from engine.lab.demo.corpus.wording import capitalised, pick

SYLLABLES = (
    "ba", "be", "bo", "ca", "ce", "co", "da", "de", "di", "do", "fa", "fe", "fi", "ga", "go", "ha", "he", "hi", "ja",
    "jo", "ka", "ki", "ko", "la", "le", "li", "lo", "lu", "ma", "me", "mi", "mo", "na", "ne", "ni", "no", "nu", "pa",
    "pe", "po", "ra", "re", "ri", "ro", "ru", "sa", "se", "si", "so", "ta", "te", "ti", "to", "tu", "va", "ve", "vi",
    "wa", "we", "xi", "ya", "yo", "za", "ze", "zo", "bra", "cle", "dri", "flo", "gra", "ple", "sta", "tra", "qui",
)  # fmt: skip
ENDINGS = ("", "", "n", "r", "s", "t", "l", "x", "m", "k", "rd", "st", "ng")

VERBS = split(
    "read write load save parse check build make find get set add remove merge split sort count send fetch "
    "open close start stop run update create delete format render print filter map join clean copy move draw "
    "show hide lock test scan pack store mix fold wrap trim skip mark track plan pick drop push pull log sum "
    "scale shift turn"
)
NOUNS = split(
    "user file page item order price table row column line word text name list tree node edge path cache queue "
    "stack token model block image color point frame event message report record key value index total limit "
    "score level step phase group team city river garden window door engine wheel sensor signal packet header "
    "footer title label button menu form field account invoice ticket basket product customer session request "
    "response client server"
)
ADJECTIVES = split(
    "old new small large fast slow quiet bright dark green red blue golden silver early late happy strange "
    "simple heavy light warm cold round open hidden local common rare gentle brave clever careful busy empty "
    "full young"
)
PEOPLE = split(
    "Ada Grace Alan Linus Barbara Donald Margaret Ken Tim Hedy Emmy Sofia Leo Mia Noah Ella Oscar Ruth Max "
    "Nina Ivan Lena Omar Yuki Rosa Tom Anna Ben Clara Emil Frida Hugo Ida Jonas Karla Lars Mona Nils Olga Paul "
    "Sara Vera"
)


@dataclass(frozen=True, slots=True)
class File:
    """A text with its name; ``language`` is the info string of its fence, empty for plain text."""

    name: str
    language: str
    text: str


def nonsense(rng: random.Random) -> str:
    """A word that means nothing: "zaflor"."""
    return "".join(pick(rng, SYLLABLES) for _ in range(rng.randint(2, 3))) + pick(rng, ENDINGS)


def any_word(rng: random.Random) -> str:
    chance = rng.random()
    return pick(rng, NOUNS) if chance < 0.45 else pick(rng, VERBS) if chance < 0.6 else nonsense(rng)


def function_name(rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.15:
        return nonsense(rng)
    if chance < 0.25:
        return pick(rng, VERBS) + capitalised(any_word(rng))
    second = any_word(rng)
    return f"{pick(rng, VERBS)}_{second}" if chance < 0.85 else f"{nonsense(rng)}_{second}"


def variable_name(rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.6:
        return any_word(rng)
    return f"{any_word(rng)}_{any_word(rng)}" if chance < 0.9 else pick(rng, "abcdefghijkmnpqrstuvwxyz")


def constant_name(rng: random.Random) -> str:
    return "_".join(any_word(rng) for _ in range(rng.randint(1, 2))).upper()


def class_name(rng: random.Random) -> str:
    return "".join(capitalised(any_word(rng)) for _ in range(rng.randint(1, 2)))


def distinct(
    rng: random.Random, draw: Callable[[random.Random], str], count: int, taken: tuple[str, ...] = ()
) -> list[str]:
    """``count`` different words from ``draw``; none of them ``taken``."""
    found: list[str] = []
    while len(found) < count:
        word = draw(rng)
        if word not in found and word not in taken and word not in RESERVED:
            found.append(word)
    return found


RESERVED = frozenset(
    split(
        "set map filter print format open sum sort list index count key value for in if is as or not and def del "
        "try i min max len id type range str int next iter hash dir vars all any zip abs bin hex oct ord chr pow "
        "round test"
    )
)


def number(rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.6:
        return str(rng.randint(0, 99))
    if chance < 0.85:
        return str(rng.randint(100, 9999))
    return f"{rng.randint(0, 9)}.{rng.randint(1, 99)}"


def literal(rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.55:
        return number(rng)
    if chance < 0.85:
        return f'"{any_word(rng)}"'
    return pick(rng, ("True", "False", "None", "[]", "{}"))


def file_name(rng: random.Random, ending: str) -> str:
    stem = variable_name(rng) if rng.random() < 0.8 else f"{any_word(rng)}/{any_word(rng)}"
    return f"{stem}.{ending}"


def sentence(rng: random.Random) -> str:
    """A plain sentence about nothing in particular."""
    n, m = pick(rng, NOUNS), pick(rng, NOUNS)
    a, b = pick(rng, ADJECTIVES), pick(rng, ADJECTIVES)
    who, place = pick(rng, PEOPLE), capitalised(nonsense(rng))
    return pick(rng, SENTENCES).format(n=n, m=m, a=a, b=b, who=who, place=place, x=rng.randint(2, 99), w=nonsense(rng))


SENTENCES = (
    "The {a} {n} stands near the {m}.", "{who} bought a {a} {n} in {place}.", "Every {n} has a {b} {m}.",
    "We found {x} {a} pages in the {n} of {place}.", "{who} never opens the {n} before noon.",
    "In {place} the {n} is always {a}.", "A {a} {n} and a {b} {m} came on Monday.", "The {n} costs {x} dollars today.",
    "Nobody knows why the {n} is so {a}.", "{who} and the {a} {n} left {place} at night.",
    "After {x} days the {m} was {b} again.", "The word {w} means {n} in {place}.", "{who} painted the {n} {a}.",
    "There are {x} ways to reach {place}.", "Please bring the {a} {n} and the {m}.", "The {m} of {who} is called {w}.",
    "Last year the {n} moved to {place}.", "It took {who} {x} hours to clean the {m}.",
    "Without a {n} the {a} {m} does not work.", "The road to {place} is {b} and {a}.",
    "{place} has {x} houses and one {a} {n}.", "When it rains, the {n} turns {a}.",
    "{who} wrote about the {b} {n} of {place}.", "Most people like the {a} {n} more than the {m}.",
)  # fmt: skip


def sentences(rng: random.Random, low: int, high: int) -> list[str]:
    """``low`` to ``high`` different sentences."""
    count = rng.randint(low, high)
    found: list[str] = []
    while len(found) < count:
        text = sentence(rng)
        if text not in found:
            found.append(text)
    return found
