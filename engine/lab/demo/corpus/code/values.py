"""Arguments for example calls, as Python literals. Lists hold distinct numbers: repeats make dull examples."""

from __future__ import annotations

import random
from collections.abc import Callable

from .program import Arguments

Literal = Callable[[random.Random], str]


def split(text: str) -> tuple[str, ...]:
    """A word list, written as one text to stay readable."""
    return tuple(text.split())


WORDS = split(
    "apple banana cherry lemon mango orange pear plum grape melon river mountain forest ocean island valley desert "
    "meadow garden bridge castle tower harbor market village python rocket planet comet galaxy signal engine robot "
    "magnet crystal window candle mirror pencil basket ladder hammer blanket pillow teapot kettle tiger rabbit falcon "
    "dolphin turtle badger otter spider beetle panda zebra yellow purple silver golden orbit puzzle wizard dragon "
    "pirate sailor doctor teacher painter singer dancer writer winter summer autumn spring monday friday morning"
)
PALINDROMES = ("level", "radar", "civic", "rotor", "kayak", "refer", "madam", "noon", "stats", "tenet")
NAMES = split(
    "Ada Grace Alan Linus Guido Edsger Barbara Donald Margaret Ken Dennis Katherine Tim Hedy Emmy Sofia Leo "
    "Mia Noah Ella Oscar Ruth Max Nina Ivan Lena Omar Yuki Rosa"
)
SENTENCES = (
    "the quick brown fox jumps over the lazy dog",
    "simple is better than complex",
    "readability counts and so do good names",
    "a good test fails when the code is wrong",
    "the rain in spain stays mainly in the plain",
    "to be or not to be that is the question",
    "she sells sea shells by the sea shore",
    "all that glitters is not gold",
    "small steps lead to great journeys",
    "the early bird catches the worm",
    "practice makes perfect every single day",
    "a picture is worth a thousand words",
    "now is better than never",
    "flat is better than nested",
    "the stars shine bright over the quiet sea",
    "code is read more often than it is written",
)


def number(low: int, high: int) -> Literal:
    """An integer of low..high, both included."""
    return lambda rng: str(rng.randint(low, high))


def one_of(*literals: str) -> Literal:
    return lambda rng: rng.choice(literals)


def each(*literals: Literal) -> Arguments:
    """Independent arguments, one from each literal."""
    return lambda rng: tuple(literal(rng) for literal in literals)


def quoted(text: str) -> str:
    return f'"{text}"'


def word(rng: random.Random) -> str:
    return quoted(rng.choice(WORDS))


def person(rng: random.Random) -> str:
    return quoted(rng.choice(NAMES))


def sentence(rng: random.Random) -> str:
    return quoted(rng.choice(SENTENCES))


def words(rng: random.Random) -> str:
    return "[" + ", ".join(map(quoted, rng.sample(WORDS, rng.randint(4, 6)))) + "]"


def maybe_palindrome(rng: random.Random) -> str:
    return quoted(rng.choice(PALINDROMES) if rng.random() < 0.6 else rng.choice(WORDS))


def _distinct(rng: random.Random, size: int, low: int = 1, high: int = 99) -> list[int]:
    return rng.sample(range(low, high + 1), size)


_FAVOURITES = [_distinct(random.Random(seed), 5 + seed % 3) for seed in range(32)]


def int_list(rng: random.Random) -> list[int]:
    """5 to 8 distinct integers of 1..99. Two lists of five come from a short ranking of favourites, so that the most
    likely example is a coherent list and not the most likely digit nine times over."""
    if rng.random() < 0.4:
        return list(_FAVOURITES[int(len(_FAVOURITES) * rng.random() ** 2)])
    return _distinct(rng, rng.randint(5, 8))


def ints(rng: random.Random) -> str:
    return str(int_list(rng))


def signed_ints(rng: random.Random) -> str:
    return str([value if rng.random() < 0.6 else -value for value in _distinct(rng, rng.randint(5, 8), 1, 20)])


def small_ints(rng: random.Random) -> str:
    """6 to 9 digits of which some repeat, for counting and duplicates."""
    values = _distinct(rng, 4, 1, 9)
    values += rng.choices(values, k=rng.randint(2, 4))
    rng.shuffle(values)
    return str(values)


def sorted_ints(rng: random.Random) -> str:
    return str(sorted(int_list(rng)))


def matrix(rows: int, columns: int) -> Literal:
    """A list of rows of distinct integers of 1..20."""

    def draw(rng: random.Random) -> str:
        values = iter(_distinct(rng, rows * columns, 1, 20))
        return str([[next(values) for _ in range(columns)] for _ in range(rows)])

    return draw


def list_and_member(ordered: bool) -> Arguments:
    """A list and one of its elements, or three times in ten a number that may be missing."""

    def draw(rng: random.Random) -> tuple[str, ...]:
        values = sorted(int_list(rng)) if ordered else int_list(rng)
        target = rng.choice(values) if rng.random() < 0.7 else rng.randint(1, 99)
        return str(values), str(target)

    return draw


def list_and_size(low: int, high: int) -> Arguments:
    return each(ints, number(low, high))
