"""Duplicates, counts and gaps in a list."""

from __future__ import annotations

from ..program import ITEMS_USAGE, NUMBERS_USAGE, Program, Variant
from ..values import each, small_ints

PROGRAMS = (
    Program(
        "remove_duplicates",
        ("a function that removes duplicates", "duplicate removal"),
        ("remove duplicates from a list", "drop repeated values but keep the order"),
        (
            Variant(
                "set",
                '''
def remove_duplicates(items: list[int]) -> list[int]:
    """Return the items without repeats, in their first order."""
    seen = set()
    result = []
    for item in items:
        if item not in seen:
            seen.add(item)
            result.append(item)
    return result
''',
                ("The set makes the lookup fast and the list keeps the order.",),
                ("with a set and a loop", "using a set"),
            ),
            Variant(
                "dict",
                '''
def remove_duplicates(items: list[int]) -> list[int]:
    """Return the items without repeats, in their first order."""
    return list(dict.fromkeys(items))
''',
                ("A dictionary keeps each key once, in order.",),
                ("in one line", "with dict.fromkeys", "with a dictionary"),
            ),
            Variant(
                "loop",
                '''
def remove_duplicates(items: list[int]) -> list[int]:
    """Return the items without repeats, in their first order."""
    result: list[int] = []
    for item in items:
        if item not in result:
            result.append(item)
    return result
''',
                ("This is simple and fine for short lists.",),
            ),
        ),
        ("f([1, 2, 1, 3, 2]) == [1, 2, 3]", "f([]) == []", "f([5, 5, 5]) == [5]", "f([3, 1, 2]) == [3, 1, 2]"),
        each(small_ints),
        ITEMS_USAGE,
        parameter="items",
    ),
    Program(
        "find_duplicates",
        ("a function that finds duplicates", "a duplicate finder"),
        ("find the duplicates in a list", "list the values that occur more than once"),
        (
            Variant(
                "counter",
                '''
from collections import Counter


def find_duplicates(items: list[int]) -> list[int]:
    """Return the values that occur more than once."""
    return [value for value, count in Counter(items).items() if count > 1]
''',
                ("Counter counts every value first.",),
            ),
            Variant(
                "set",
                '''
def find_duplicates(items: list[int]) -> list[int]:
    """Return the values that occur more than once."""
    seen = set()
    repeated = []
    for item in items:
        if item in seen and item not in repeated:
            repeated.append(item)
        seen.add(item)
    return repeated
''',
                ("The set remembers what has been seen.",),
            ),
        ),
        ("f([1, 2, 1, 3]) == [1]", "f([1, 2, 3]) == []", "sorted(f([4, 4, 5, 5, 5])) == [4, 5]"),
        each(small_ints),
        ITEMS_USAGE,
        parameter="items",
    ),
    Program(
        "find_missing",
        ("a function that finds the missing number", "a missing number finder"),
        ("find the missing number from 1 to n", "find which number is missing in a list"),
        (
            Variant(
                "sum",
                '''
def find_missing(numbers: list[int]) -> int:
    """Return the one number of 1..n that is missing."""
    n = len(numbers) + 1
    return n * (n + 1) // 2 - sum(numbers)
''',
                ("The expected sum minus the real sum is the missing number.",),
                ("with the sum formula", "using sums"),
            ),
            Variant(
                "set",
                '''
def find_missing(numbers: list[int]) -> int:
    """Return the one number of 1..n that is missing."""
    expected = set(range(1, len(numbers) + 2))
    return (expected - set(numbers)).pop()
''',
                ("The difference of both sets has one element.",),
            ),
            Variant(
                "bits",
                '''
def find_missing(numbers: list[int]) -> int:
    """Return the one number of 1..n that is missing."""
    result = len(numbers) + 1
    for index, number in enumerate(numbers, start=1):
        result ^= index ^ number
    return result
''',
                ("Equal numbers cancel out under xor.",),
                ("with xor", "using xor", "with bit operations"),
            ),
        ),
        ("f([1, 2, 4]) == 3", "f([2, 3]) == 1", "f([1, 2, 3]) == 4", "f([5, 1, 4, 2]) == 3"),
        lambda rng: (str(rng.sample(range(1, (n := rng.randint(6, 9)) + 1), n)[:-1]),),
        NUMBERS_USAGE,
        parameter="numbers",
    ),
)
