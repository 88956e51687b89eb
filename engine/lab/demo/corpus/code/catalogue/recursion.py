"""Puzzles that are known for their recursion, and the ways around it."""

from __future__ import annotations

import random

from ..program import Program, Variant
from ..values import each, number

HANOI_FACTS = ('f(1, "A", "C", "B") == [("A", "C")]', 'len(f(3, "A", "C", "B")) == 7', 'f(0, "A", "C", "B") == []')


def letters(rng: random.Random) -> str:
    return str(rng.sample("abcdexyz", 3)).replace("'", '"')


def few_numbers(rng: random.Random) -> str:
    return str(sorted(rng.sample(range(1, 20), 3)))


PROGRAMS = (
    Program(
        "hanoi",
        ("the towers of Hanoi", "a towers of hanoi solver"),
        ("solve the towers of Hanoi", "list the moves of the towers of Hanoi"),
        (
            Variant(
                "recursive",
                '''
def hanoi(n: int, source: str, target: str, spare: str) -> list[tuple[str, str]]:
    """Return the moves that bring n disks from source to target."""
    if n == 0:
        return []
    before = hanoi(n - 1, source, spare, target)
    after = hanoi(n - 1, spare, target, source)
    return before + [(source, target)] + after
''',
                ("The n - 1 smaller disks move out of the way first.", "It takes 2**n - 1 moves."),
            ),
            Variant(
                "generator",
                '''
from collections.abc import Iterator


def hanoi(n: int, source: str, target: str, spare: str) -> Iterator[tuple[str, str]]:
    """Yield the moves that bring n disks from source to target."""
    if n > 0:
        yield from hanoi(n - 1, source, spare, target)
        yield source, target
        yield from hanoi(n - 1, spare, target, source)
''',
                ("The moves come one at a time.",),
                usage='for move in f({0}, "A", "C", "B"):\n    print(*move)',
                facts=('list(f(1, "A", "C", "B")) == [("A", "C")]', 'len(list(f(3, "A", "C", "B"))) == 7'),
            ),
        ),
        HANOI_FACTS,
        each(number(2, 5)),
        'for start, end in f({0}, "A", "C", "B"):\n    print(start, "->", end)',
    ),
    Program(
        "permutations",
        ("a permutations function", "a list of all permutations"),
        ("list all permutations of a list", "find every order of some items"),
        (
            Variant(
                "recursive",
                '''
def permutations(items: list) -> list[list]:
    """Return the items in every possible order."""
    if not items:
        return [[]]
    result = []
    for i, item in enumerate(items):
        rest = items[:i] + items[i + 1 :]
        for tail in permutations(rest):
            result.append([item] + tail)
    return result
''',
                ("Every item comes first once, followed by every order of the rest.",),
            ),
            Variant(
                "builtin",
                '''
import itertools


def permutations(items: list) -> list[list]:
    """Return the items in every possible order."""
    return [list(order) for order in itertools.permutations(items)]
''',
                ("itertools has a function for it.",),
                ("with itertools", "using the itertools module"),
            ),
            Variant(
                "loop",
                '''
def permutations(items: list) -> list[list]:
    """Return the items in every possible order."""
    result: list[list] = [[]]
    for item in items:
        result = [order[:i] + [item] + order[i:] for order in result for i in range(len(order) + 1)]
    return result
''',
                ("Each item is inserted at every place of the orders so far.",),
                ("with a loop", "without recursion", "by inserting"),
            ),
        ),
        ("len(f([1, 2, 3])) == 6", "sorted(f([1, 2])) == [[1, 2], [2, 1]]", "f([]) == [[]]"),
        each(letters),
    ),
    Program(
        "subsets",
        ("a subsets function", "a power set"),
        ("list all subsets of a list", "compute the power set"),
        (
            Variant(
                "recursive",
                '''
def subsets(items: list) -> list[list]:
    """Return every selection of the items."""
    if not items:
        return [[]]
    without = subsets(items[1:])
    return without + [[items[0]] + rest for rest in without]
''',
                ("The first item is either left out or taken.",),
            ),
            Variant(
                "bits",
                '''
def subsets(items: list) -> list[list]:
    """Return every selection of the items."""
    result = []
    for mask in range(2 ** len(items)):
        result.append([item for i, item in enumerate(items) if mask >> i & 1])
    return result
''',
                ("Each bit of the mask says whether an item is taken.",),
            ),
            Variant(
                "loop",
                '''
def subsets(items: list) -> list[list]:
    """Return every selection of the items."""
    result: list[list] = [[]]
    for item in items:
        result += [chosen + [item] for chosen in result]
    return result
''',
                ("Each item doubles the number of selections.",),
                ("with a loop", "without recursion"),
            ),
        ),
        ("len(f([1, 2, 3])) == 8", "sorted(f([1, 2])) == [[], [1], [1, 2], [2]]", "f([]) == [[]]"),
        each(few_numbers),
    ),
    Program(
        "combinations",
        ("a combinations function", "all combinations of k items"),
        ("list all combinations of k items", "choose k items from a list in every way"),
        (
            Variant(
                "recursive",
                '''
def combinations(items: list, k: int) -> list[list]:
    """Return every way to choose k of the items."""
    if k == 0:
        return [[]]
    if len(items) < k:
        return []
    with_first = [[items[0]] + rest for rest in combinations(items[1:], k - 1)]
    return with_first + combinations(items[1:], k)
''',
                ("The first item is either chosen or not.",),
            ),
            Variant(
                "builtin",
                '''
import itertools


def combinations(items: list, k: int) -> list[list]:
    """Return every way to choose k of the items."""
    return [list(chosen) for chosen in itertools.combinations(items, k)]
''',
                ("itertools has a function for it.",),
                ("with itertools", "using the itertools module"),
            ),
        ),
        ("f([1, 2, 3], 2) == [[1, 2], [1, 3], [2, 3]]", "f([1], 0) == [[]]", "f([1], 2) == []"),
        each(lambda rng: str(sorted(rng.sample(range(1, 20), 4))), number(2, 3)),
    ),
    Program(
        "queens",
        ("an n queens solver", "the eight queens puzzle"),
        ("solve the n queens puzzle", "place queens that do not attack each other"),
        (
            Variant(
                "recursive",
                '''
def queens(n: int, columns: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Return all solutions for n rows, as the column of each row."""
    row = len(columns)
    if row == n:
        return [columns]
    solutions = []
    for column in range(n):
        if all(column != c and abs(column - c) != row - r for r, c in enumerate(columns)):
            solutions += queens(n, columns + (column,))
    return solutions
''',
                ("Each call places one queen in the next row.",),
            ),
            Variant(
                "builtin",
                '''
from itertools import permutations


def queens(n: int) -> list[tuple[int, ...]]:
    """Return all solutions for n rows, as the column of each row."""
    return [
        columns
        for columns in permutations(range(n))
        if len({r + c for r, c in enumerate(columns)}) == n
        and len({r - c for r, c in enumerate(columns)}) == n
    ]
''',
                ("A permutation never uses a row or a column twice.",),
                ("with itertools", "with permutations", "using permutations"),
            ),
        ),
        ("len(f(4)) == 2", "f(1) == [(0,)]", "len(f(5)) == 10", "f(3) == []"),
        each(number(4, 7)),
        "solutions = f({0})\nprint(len(solutions))\nprint(solutions[:1])",
    ),
    Program(
        "pascal",
        ("the triangle of Pascal", "a pascal triangle"),
        ("compute the triangle of Pascal", "list the rows of the Pascal triangle"),
        (
            Variant(
                "loop",
                '''
def pascal(rows: int) -> list[list[int]]:
    """Return the first rows of the triangle."""
    triangle = [[1]]
    while len(triangle) < rows:
        last = triangle[-1]
        middle = [a + b for a, b in zip(last, last[1:])]
        triangle.append([1, *middle, 1])
    return triangle
''',
                ("Each number is the sum of the two above it.",),
            ),
            Variant(
                "recursive",
                '''
def pascal(rows: int) -> list[list[int]]:
    """Return the first rows of the triangle."""
    if rows == 1:
        return [[1]]
    triangle = pascal(rows - 1)
    last = triangle[-1]
    middle = [a + b for a, b in zip(last, last[1:])]
    return triangle + [[1, *middle, 1]]
''',
                ("Each call adds one row below the others.",),
            ),
            Variant(
                "builtin",
                '''
from math import comb


def pascal(rows: int) -> list[list[int]]:
    """Return the first rows of the triangle."""
    return [[comb(n, k) for k in range(n + 1)] for n in range(rows)]
''',
                ("The entries are binomial coefficients.",),
                ("with math.comb", "using binomial coefficients"),
            ),
        ),
        ("f(3) == [[1], [1, 1], [1, 2, 1]]", "f(1) == [[1]]", "f(5)[4] == [1, 4, 6, 4, 1]"),
        each(number(4, 9)),
        "for row in f({0}):\n    print(row)",
    ),
)
