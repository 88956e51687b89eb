"""Lists: taking apart, turning around, adding up."""

from __future__ import annotations

from ..program import ITEMS_USAGE, NUMBERS_USAGE, Program, Variant
from ..values import each, ints, list_and_size, signed_ints

PROGRAMS = (
    Program(
        "flatten",
        ("a flatten function", "a list flattener"),
        ("flatten a nested list", "turn nested lists into one flat list"),
        (
            Variant(
                "recursive",
                '''
def flatten(items: list) -> list:
    """Return all elements of nested lists as one flat list."""
    result = []
    for item in items:
        if isinstance(item, list):
            result.extend(flatten(item))
        else:
            result.append(item)
    return result
''',
                ("It works for any depth of nesting.",),
            ),
            Variant(
                "generator",
                '''
from collections.abc import Iterator


def flatten(items: list) -> Iterator:
    """Yield all elements of nested lists."""
    for item in items:
        if isinstance(item, list):
            yield from flatten(item)
        else:
            yield item
''',
                ("yield from passes on everything that the inner call yields.",),
                usage="print(list(f({0})))",
                facts=("list(f([1, [2, [3]]])) == [1, 2, 3]", "list(f([])) == []", "list(f([[], [4]])) == [4]"),
            ),
            Variant(
                "loop",
                '''
def flatten(items: list) -> list:
    """Return all elements of nested lists as one flat list."""
    stack = list(reversed(items))
    result = []
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        else:
            result.append(item)
    return result
''',
                ("The stack holds what is still to be visited.",),
                ("with a stack", "without recursion", "with a loop"),
            ),
        ),
        ("f([1, [2, [3]]]) == [1, 2, 3]", "f([]) == []", "f([[], [4]]) == [4]", "f([1, 2]) == [1, 2]"),
        each(
            lambda rng: (
                "[{}, [{}, {}], [{}, [{}, {}]]]".format(*rng.sample(range(1, 30), 6))
                if rng.random() < 0.5
                else "[[{}, {}], {}, [[{}], {}]]".format(*rng.sample(range(1, 30), 5))
            )
        ),
    ),
    Program(
        "chunks",
        ("a function that splits a list into chunks", "list chunking"),
        ("split a list into chunks", "cut a list into parts of equal size"),
        (
            Variant(
                "comprehension",
                '''
def chunks(items: list[int], size: int) -> list[list[int]]:
    """Return the items in lists of size elements; the last may be shorter."""
    return [items[i : i + size] for i in range(0, len(items), size)]
''',
                ("The last chunk may be shorter.",),
                ("with a list comprehension", "in one line"),
            ),
            Variant(
                "generator",
                '''
from collections.abc import Iterator


def chunks(items: list[int], size: int) -> Iterator[list[int]]:
    """Yield the items in lists of size elements; the last may be shorter."""
    for i in range(0, len(items), size):
        yield items[i : i + size]
''',
                ("The generator yields one chunk at a time.",),
                usage="items = {0}\nfor chunk in f(items, {1}):\n    print(chunk)",
                facts=("list(f([1, 2, 3], 2)) == [[1, 2], [3]]", "list(f([], 3)) == []"),
            ),
            Variant(
                "while",
                '''
def chunks(items: list[int], size: int) -> list[list[int]]:
    """Return the items in lists of size elements; the last may be shorter."""
    result = []
    while items:
        result.append(items[:size])
        items = items[size:]
    return result
''',
                ("Each step takes one chunk from the front.",),
            ),
        ),
        ("f([1, 2, 3], 2) == [[1, 2], [3]]", "f([], 3) == []", "f([1, 2, 3, 4], 2) == [[1, 2], [3, 4]]"),
        list_and_size(2, 4),
        "items = {0}\nprint(f(items, {1}))",
        parameter="items",
    ),
    Program(
        "rotate",
        ("a list rotation", "a rotate function"),
        ("rotate a list by k places", "move the elements of a list to the right"),
        (
            Variant(
                "slicing",
                '''
def rotate(items: list[int], k: int) -> list[int]:
    """Return the items moved k places to the right."""
    if not items:
        return []
    k %= len(items)
    return items[-k:] + items[:-k] if k else list(items)
''',
                ("The last k elements move to the front.",),
            ),
            Variant(
                "deque",
                '''
from collections import deque


def rotate(items: list[int], k: int) -> list[int]:
    """Return the items moved k places to the right."""
    queue = deque(items)
    queue.rotate(k)
    return list(queue)
''',
                ("A deque has a method for it.",),
            ),
            Variant(
                "loop",
                '''
def rotate(items: list[int], k: int) -> list[int]:
    """Return the items moved k places to the right."""
    result = list(items)
    for _ in range(k):
        result.insert(0, result.pop())
    return result
''',
                ("Each step moves the last element to the front.",),
            ),
        ),
        ("f([1, 2, 3], 1) == [3, 1, 2]", "f([1, 2, 3], 0) == [1, 2, 3]", "f([1, 2, 3, 4], 2) == [3, 4, 1, 2]"),
        list_and_size(1, 4),
        "items = {0}\nprint(f(items, {1}))",
        parameter="items",
    ),
    Program(
        "reverse_list",
        ("a list reversal", "a function that reverses a list"),
        ("reverse a list", "turn a list around"),
        (
            Variant(
                "slicing",
                '''
def reverse_list(items: list[int]) -> list[int]:
    """Return the items in reverse order."""
    return items[::-1]
''',
                ("The slice makes a reversed copy.",),
            ),
            Variant(
                "in_place",
                '''
def reverse_list(items: list[int]) -> None:
    """Reverse the items in place."""
    left, right = 0, len(items) - 1
    while left < right:
        items[left], items[right] = items[right], items[left]
        left += 1
        right -= 1
''',
                ("It swaps the two ends and moves to the middle.",),
                usage="items = {0}\nf(items)\nprint(items)",
                setup="items = [1, 2, 3, 4]\nf(items)",
                facts=("items == [4, 3, 2, 1]", "len(items) == 4"),
            ),
            Variant(
                "recursive",
                '''
def reverse_list(items: list[int]) -> list[int]:
    """Return the items in reverse order."""
    if not items:
        return []
    return reverse_list(items[1:]) + [items[0]]
''',
                ("The first element goes behind the reversed rest.",),
            ),
        ),
        ("f([1, 2, 3]) == [3, 2, 1]", "f([]) == []", "f([5]) == [5]"),
        each(ints),
        ITEMS_USAGE,
        parameter="items",
    ),
    Program(
        "sum_list",
        ("a function that adds up a list", "a sum of a list"),
        ("add up the numbers of a list", "compute the sum of a list without sum"),
        (
            Variant(
                "loop",
                '''
def sum_list(numbers: list[int]) -> int:
    """Return the sum of the numbers."""
    total = 0
    for number in numbers:
        total += number
    return total
''',
                ("The loop adds one number after the other.",),
            ),
            Variant(
                "recursive",
                '''
def sum_list(numbers: list[int]) -> int:
    """Return the sum of the numbers."""
    if not numbers:
        return 0
    return numbers[0] + sum_list(numbers[1:])
''',
                ("The sum is the first number plus the sum of the rest.",),
            ),
            Variant(
                "reduce",
                '''
from functools import reduce


def sum_list(numbers: list[int]) -> int:
    """Return the sum of the numbers."""
    return reduce(lambda a, b: a + b, numbers, 0)
''',
                ("reduce adds the numbers from left to right.",),
            ),
        ),
        ("f([1, 2, 3]) == 6", "f([]) == 0", "f([5]) == 5", "f([-2, 2]) == 0"),
        each(ints),
        NUMBERS_USAGE,
        parameter="numbers",
    ),
    Program(
        "even_numbers",
        ("an even number filter", "a filter for even numbers"),
        ("keep only the even numbers of a list", "filter the even numbers"),
        (
            Variant(
                "comprehension",
                '''
def even_numbers(numbers: list[int]) -> list[int]:
    """Return the numbers that are even."""
    return [number for number in numbers if number % 2 == 0]
''',
                ("A number is even when the remainder is zero.",),
            ),
            Variant(
                "loop",
                '''
def even_numbers(numbers: list[int]) -> list[int]:
    """Return the numbers that are even."""
    result = []
    for number in numbers:
        if number % 2 == 0:
            result.append(number)
    return result
''',
                ("Odd numbers are skipped.",),
            ),
            Variant(
                "filter",
                '''
def even_numbers(numbers: list[int]) -> list[int]:
    """Return the numbers that are even."""
    return list(filter(lambda number: number % 2 == 0, numbers))
''',
                ("filter keeps what the lambda accepts.",),
                ("with filter", "using filter and a lambda"),
            ),
        ),
        ("f([1, 2, 3, 4]) == [2, 4]", "f([]) == []", "f([1, 3]) == []", "f([0, -2]) == [0, -2]"),
        each(ints),
        NUMBERS_USAGE,
        parameter="numbers",
    ),
    Program(
        "running_total",
        ("a running total", "a cumulative sum"),
        ("compute the running total of a list", "compute cumulative sums"),
        (
            Variant(
                "loop",
                '''
def running_total(numbers: list[int]) -> list[int]:
    """Return the sums of the first 1, 2, 3, ... numbers."""
    total = 0
    result = []
    for number in numbers:
        total += number
        result.append(total)
    return result
''',
                ("Each entry is the sum of everything up to it.",),
            ),
            Variant(
                "builtin",
                '''
from itertools import accumulate


def running_total(numbers: list[int]) -> list[int]:
    """Return the sums of the first 1, 2, 3, ... numbers."""
    return list(accumulate(numbers))
''',
                ("accumulate adds by default.",),
                ("with itertools.accumulate", "using accumulate"),
            ),
            Variant(
                "generator",
                '''
from collections.abc import Iterator


def running_total(numbers: list[int]) -> Iterator[int]:
    """Yield the sums of the first 1, 2, 3, ... numbers."""
    total = 0
    for number in numbers:
        total += number
        yield total
''',
                ("The generator remembers the total between two values.",),
                usage="numbers = {0}\nprint(list(f(numbers)))",
                facts=("list(f([1, 2, 3])) == [1, 3, 6]", "list(f([])) == []", "list(f([5, -5])) == [5, 0]"),
            ),
        ),
        ("f([1, 2, 3]) == [1, 3, 6]", "f([]) == []", "f([5, -5]) == [5, 0]"),
        each(ints),
        NUMBERS_USAGE,
        parameter="numbers",
    ),
    Program(
        "max_subarray",
        ("the maximum subarray problem", "the algorithm of Kadane"),
        ("find the largest sum of a subarray", "find the best contiguous sum in a list"),
        (
            Variant(
                "loop",
                '''
def max_subarray(numbers: list[int]) -> int:
    """Return the largest sum of neighboring numbers."""
    best = current = numbers[0]
    for number in numbers[1:]:
        current = max(number, current + number)
        best = max(best, current)
    return best
''',
                ("A sum is dropped as soon as starting anew is better.", "One pass is enough."),
            ),
            Variant(
                "brute_force",
                '''
def max_subarray(numbers: list[int]) -> int:
    """Return the largest sum of neighboring numbers."""
    best = numbers[0]
    for start in range(len(numbers)):
        for end in range(start + 1, len(numbers) + 1):
            best = max(best, sum(numbers[start:end]))
    return best
''',
                ("It tries every start and every end.",),
                ("by brute force", "with nested loops"),
            ),
        ),
        ("f([1, -2, 3, 4]) == 7", "f([-3, -1]) == -1", "f([5]) == 5", "f([2, -1, 2]) == 3"),
        each(signed_ints),
        NUMBERS_USAGE,
        parameter="numbers",
    ),
)
