"""Problems that are solved with a table of smaller answers."""

from __future__ import annotations

from ..program import Program, Variant
from ..values import WORDS, each, number

PROGRAMS = (
    Program(
        "climb_stairs",
        ("a climbing stairs solution", "the climbing stairs problem"),
        ("count the ways to climb stairs", "count the ways to climb n steps by one or two"),
        (
            Variant(
                "loop",
                '''
def climb_stairs(n: int) -> int:
    """Return in how many ways n steps can be climbed by one or two."""
    ways, following = 1, 1
    for _ in range(n):
        ways, following = following, ways + following
    return ways
''',
                ("The number of ways grows like the Fibonacci numbers.",),
                ("with a loop", "without recursion"),
            ),
            Variant(
                "memo",
                '''
from functools import cache


@cache
def climb_stairs(n: int) -> int:
    """Return in how many ways n steps can be climbed by one or two."""
    if n <= 1:
        return 1
    return climb_stairs(n - 1) + climb_stairs(n - 2)
''',
                ("The last step is either a single or a double one.",),
            ),
            Variant(
                "recursive",
                '''
def climb_stairs(n: int) -> int:
    """Return in how many ways n steps can be climbed by one or two."""
    if n <= 1:
        return 1
    return climb_stairs(n - 1) + climb_stairs(n - 2)
''',
                ("This is short, but slow for many steps.",),
            ),
        ),
        ("f(1) == 1", "f(2) == 2", "f(5) == 8", "f(0) == 1"),
        each(number(4, 20)),
    ),
    Program(
        "count_change",
        ("a coin change solution", "the coin change problem"),
        ("count the ways to make change", "solve the coin change problem"),
        (
            Variant(
                "loop",
                '''
def count_change(amount: int, coins: list[int]) -> int:
    """Return in how many ways the coins make the amount."""
    ways = [1] + [0] * amount
    for coin in coins:
        for value in range(coin, amount + 1):
            ways[value] += ways[value - coin]
    return ways[amount]
''',
                ("The table counts the ways for every smaller amount.",),
                ("with dynamic programming", "with a table", "with loops"),
            ),
            Variant(
                "recursive",
                '''
def count_change(amount: int, coins: list[int]) -> int:
    """Return in how many ways the coins make the amount."""
    if amount == 0:
        return 1
    if amount < 0 or not coins:
        return 0
    return count_change(amount - coins[0], coins) + count_change(amount, coins[1:])
''',
                ("Either the first coin is used once more or never again.",),
            ),
        ),
        ("f(4, [1, 2]) == 3", "f(0, [5]) == 1", "f(3, [2]) == 0", "f(10, [1, 5, 10]) == 4"),
        each(number(8, 30), lambda rng: str([1, *sorted(rng.sample((2, 5, 10, 20), 2))])),
    ),
    Program(
        "edit_distance",
        ("the edit distance", "a Levenshtein distance function"),
        ("compute the edit distance of two words", "measure how different two words are"),
        (
            Variant(
                "loop",
                '''
def edit_distance(first: str, second: str) -> int:
    """Return how many edits turn the first word into the second."""
    previous = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        current = [i]
        for j, b in enumerate(second, start=1):
            change = previous[j - 1] + (a != b)
            current.append(min(change, previous[j] + 1, current[-1] + 1))
        previous = current
    return previous[-1]
''',
                ("Only two rows of the table are needed at a time.",),
                ("with a table", "with dynamic programming", "with loops"),
            ),
            Variant(
                "recursive",
                '''
from functools import cache


@cache
def edit_distance(first: str, second: str) -> int:
    """Return how many edits turn the first word into the second."""
    if not first or not second:
        return len(first) + len(second)
    change = edit_distance(first[1:], second[1:]) + (first[0] != second[0])
    delete = edit_distance(first[1:], second) + 1
    insert = edit_distance(first, second[1:]) + 1
    return min(change, delete, insert)
''',
                ("The cache makes sure that each pair is solved once.",),
                ("recursively", "with recursion and a cache"),
            ),
        ),
        ('f("kitten", "sitting") == 3', 'f("", "abc") == 3', 'f("same", "same") == 0', 'f("cat", "cut") == 1'),
        lambda rng: tuple(f'"{word}"' for word in rng.sample(WORDS, 2)),
    ),
    Program(
        "longest_common",
        ("the longest common subsequence", "a longest common subsequence function"),
        ("find the longest common subsequence", "find the longest sequence that two words share"),
        (
            Variant(
                "recursive",
                '''
from functools import cache


@cache
def longest_common(first: str, second: str) -> str:
    """Return the longest sequence of letters in both words."""
    if not first or not second:
        return ""
    if first[0] == second[0]:
        return first[0] + longest_common(first[1:], second[1:])
    return max(longest_common(first[1:], second), longest_common(first, second[1:]), key=len)
''',
                ("Equal first letters belong to the answer.",),
                ("recursively", "with recursion and a cache"),
            ),
            Variant(
                "loop",
                '''
def longest_common(first: str, second: str) -> str:
    """Return the longest sequence of letters in both words."""
    best = [""] * (len(second) + 1)
    for a in first:
        previous = list(best)
        for j, b in enumerate(second):
            if a == b:
                best[j + 1] = previous[j] + a
            else:
                best[j + 1] = max(previous[j + 1], best[j], key=len)
    return best[-1]
''',
                ("The list holds the best answer for every prefix.",),
                ("with a table", "with dynamic programming", "with loops"),
            ),
        ),
        ('len(f("abcde", "ace")) == 3', 'f("abc", "xyz") == ""', 'f("hello", "hello") == "hello"'),
        lambda rng: tuple(f'"{word}"' for word in rng.sample(WORDS, 2)),
    ),
)
