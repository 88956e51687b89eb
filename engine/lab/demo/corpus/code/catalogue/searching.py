"""Searching a list, and its largest and smallest elements."""

from __future__ import annotations

from ..program import NUMBERS_USAGE, Program, Variant
from ..values import each, ints, list_and_member, list_and_size

SEARCH_USAGE = "items = {0}\nprint(f(items, {1}))"

PROGRAMS = (
    Program(
        "binary_search",
        ("a binary search", "the binary search algorithm"),
        ("find a value in a sorted list", "search a sorted list with binary search"),
        (
            Variant(
                "loop",
                '''
def binary_search(items: list[int], target: int) -> int:
    """Return the index of target in sorted items, or -1."""
    low, high = 0, len(items) - 1
    while low <= high:
        middle = (low + high) // 2
        if items[middle] == target:
            return middle
        if items[middle] < target:
            low = middle + 1
        else:
            high = middle - 1
    return -1
''',
                ("Each step halves the range, so it takes O(log n) time.", "It returns -1 when the value is missing."),
                ("with a while loop", "with a loop", "without recursion"),
            ),
            Variant(
                "recursive",
                '''
def binary_search(items: list[int], target: int, low: int = 0, high: int | None = None) -> int:
    """Return the index of target in sorted items, or -1."""
    if high is None:
        high = len(items) - 1
    if low > high:
        return -1
    middle = (low + high) // 2
    if items[middle] == target:
        return middle
    if items[middle] < target:
        return binary_search(items, target, middle + 1, high)
    return binary_search(items, target, low, middle - 1)
''',
                ("Each call searches one half of the range.",),
            ),
            Variant(
                "builtin",
                '''
from bisect import bisect_left


def binary_search(items: list[int], target: int) -> int:
    """Return the index of target in sorted items, or -1."""
    index = bisect_left(items, target)
    if index < len(items) and items[index] == target:
        return index
    return -1
''',
                ("The bisect module of the standard library does the search.",),
                ("with the bisect module", "using bisect", "with the standard library"),
            ),
        ),
        (
            "f([1, 3, 5, 7], 5) == 2",
            "f([1, 3, 5, 7], 4) == -1",
            "f([], 1) == -1",
            "f([2], 2) == 0",
            "f([10, 20, 30], 30) == 2",
            "f([4, 8, 15, 16, 23, 42], 4) == 0",
        ),
        list_and_member(ordered=True),
        SEARCH_USAGE,
        parameter="items",
    ),
    Program(
        "linear_search",
        ("a linear search", "the linear search algorithm"),
        ("find the index of a value in a list", "search a list from start to end"),
        (
            Variant(
                "loop",
                '''
def linear_search(items: list[int], target: int) -> int:
    """Return the index of target in items, or -1."""
    for index, item in enumerate(items):
        if item == target:
            return index
    return -1
''',
                ("It looks at one element after the other.", "It returns -1 when the value is missing."),
            ),
            Variant(
                "recursive",
                '''
def linear_search(items: list[int], target: int, index: int = 0) -> int:
    """Return the index of target in items, or -1."""
    if index == len(items):
        return -1
    if items[index] == target:
        return index
    return linear_search(items, target, index + 1)
''',
                ("Each call looks at one element.",),
            ),
            Variant(
                "generator",
                '''
def linear_search(items: list[int], target: int) -> int:
    """Return the index of target in items, or -1."""
    return next((i for i, item in enumerate(items) if item == target), -1)
''',
                ("The second argument of next is the answer when nothing is found.",),
                ("in one line", "with next", "with a generator expression"),
            ),
        ),
        ("f([4, 2, 9], 9) == 2", "f([4, 2, 9], 5) == -1", "f([], 1) == -1", "f([6, 6], 6) == 0"),
        list_and_member(ordered=False),
        SEARCH_USAGE,
        parameter="items",
    ),
    Program(
        "find_max",
        ("a function for the maximum", "a search for the largest number"),
        ("find the largest number in a list", "find the maximum without max"),
        (
            Variant(
                "loop",
                '''
def find_max(numbers: list[int]) -> int:
    """Return the largest number."""
    largest = numbers[0]
    for number in numbers[1:]:
        if number > largest:
            largest = number
    return largest
''',
                ("It remembers the largest number so far.",),
            ),
            Variant(
                "recursive",
                '''
def find_max(numbers: list[int]) -> int:
    """Return the largest number."""
    if len(numbers) == 1:
        return numbers[0]
    rest = find_max(numbers[1:])
    return numbers[0] if numbers[0] > rest else rest
''',
                ("It compares the first number with the maximum of the rest.",),
            ),
            Variant(
                "reduce",
                '''
from functools import reduce


def find_max(numbers: list[int]) -> int:
    """Return the largest number."""
    return reduce(lambda a, b: a if a > b else b, numbers)
''',
                ("It keeps the larger of two numbers until one is left.",),
            ),
        ),
        ("f([3, 9, 4]) == 9", "f([5]) == 5", "f([-3, -8]) == -3", "f([1, 2, 3, 4]) == 4"),
        each(ints),
        NUMBERS_USAGE,
        parameter="numbers",
    ),
    Program(
        "second_largest",
        ("a search for the second largest number", "a second largest function"),
        ("find the second largest number in a list",),
        (
            Variant(
                "loop",
                '''
def second_largest(numbers: list[int]) -> int:
    """Return the second largest of at least two distinct numbers."""
    first, second = sorted(numbers[:2], reverse=True)
    for number in numbers[2:]:
        if number > first:
            first, second = number, first
        elif number > second:
            second = number
    return second
''',
                ("One pass over the list is enough.",),
                ("with one loop", "in one pass", "without sorting everything"),
            ),
            Variant(
                "set",
                '''
def second_largest(numbers: list[int]) -> int:
    """Return the second largest distinct number."""
    return sorted(set(numbers))[-2]
''',
                ("The set removes duplicates first.",),
            ),
            Variant(
                "heap",
                '''
from heapq import nlargest


def second_largest(numbers: list[int]) -> int:
    """Return the second largest number."""
    return nlargest(2, numbers)[1]
''',
                ("nlargest finds the two largest numbers.",),
            ),
        ),
        ("f([3, 9, 4]) == 4", "f([1, 2]) == 1", "f([8, 6, 7, 5]) == 7", "f([10, 40, 20, 30]) == 30"),
        each(ints),
        NUMBERS_USAGE,
        parameter="numbers",
    ),
    Program(
        "min_and_max",
        ("a function for minimum and maximum", "a min and max function"),
        ("find the smallest and the largest number", "return both minimum and maximum of a list"),
        (
            Variant(
                "loop",
                '''
def min_and_max(numbers: list[int]) -> tuple[int, int]:
    """Return the smallest and the largest number."""
    smallest = largest = numbers[0]
    for number in numbers:
        if number < smallest:
            smallest = number
        elif number > largest:
            largest = number
    return smallest, largest
''',
                ("One pass finds both values.",),
            ),
            Variant(
                "builtin",
                '''
def min_and_max(numbers: list[int]) -> tuple[int, int]:
    """Return the smallest and the largest number."""
    return min(numbers), max(numbers)
''',
                ("It returns both values as a tuple.",),
            ),
        ),
        ("f([3, 9, 4]) == (3, 9)", "f([5]) == (5, 5)", "f([2, -1, 7]) == (-1, 7)"),
        each(ints),
        NUMBERS_USAGE,
        parameter="numbers",
    ),
    Program(
        "two_sum",
        ("a two sum solution", "the two sum problem"),
        ("find two numbers that add up to a target", "solve the two sum problem"),
        (
            Variant(
                "dict",
                '''
def two_sum(numbers: list[int], target: int) -> tuple[int, int] | None:
    """Return the indices of two numbers whose sum is target."""
    seen: dict[int, int] = {}
    for index, number in enumerate(numbers):
        if target - number in seen:
            return seen[target - number], index
        seen[number] = index
    return None
''',
                ("The dictionary remembers where each number was.", "It needs only one pass over the list."),
            ),
            Variant(
                "loop",
                '''
def two_sum(numbers: list[int], target: int) -> tuple[int, int] | None:
    """Return the indices of two numbers whose sum is target."""
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            if numbers[i] + numbers[j] == target:
                return i, j
    return None
''',
                ("It tries every pair of numbers.",),
                ("with two loops", "with nested loops", "by brute force"),
            ),
        ),
        ("f([2, 7, 11], 9) == (0, 1)", "f([1, 2, 3], 7) is None", "f([3, 2, 4], 6) == (1, 2)"),
        list_and_size(20, 120),
        "numbers = {0}\nprint(f(numbers, {1}))",
        parameter="numbers",
    ),
)
