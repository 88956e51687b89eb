"""Functions of functions, closures and generators."""

from __future__ import annotations

from ..program import Program, Variant
from ..values import each, int_list, ints, number, one_of

PROGRAMS = (
    Program(
        "compose",
        ("a compose function", "function composition"),
        ("combine two functions into one", "compose functions"),
        (
            Variant(
                "closure",
                '''
from collections.abc import Callable


def compose(outer: Callable, inner: Callable) -> Callable:
    """Return a function that applies inner and then outer."""

    def composed(x: object) -> object:
        return outer(inner(x))

    return composed
''',
                ("The inner function is applied first.",),
            ),
            Variant(
                "lambda",
                '''
from collections.abc import Callable


def compose(outer: Callable, inner: Callable) -> Callable:
    """Return a function that applies inner and then outer."""
    return lambda x: outer(inner(x))
''',
                ("The lambda remembers both functions.",),
                ("with a lambda", "in one line"),
            ),
            Variant(
                "reduce",
                '''
from collections.abc import Callable
from functools import reduce


def compose(*functions: Callable) -> Callable:
    """Return a function that applies all functions from right to left."""
    return reduce(lambda outer, inner: lambda x: outer(inner(x)), functions)
''',
                ("It takes any number of functions.",),
                ("for any number of functions", "with functools.reduce"),
            ),
        ),
        ('f(str, abs)(-4) == "4"', "f(len, str)(1234) == 4", 'f(abs, int)("-7") == 7'),
        each(one_of("abs", "float", "str"), one_of("int", "round", "abs"), number(-99, -2)),
        "function = f({0}, {1})\nprint(function({2}))",
    ),
    Program(
        "make_counter",
        ("a counter with a closure", "a counter function"),
        ("make a counter", "create a function that counts its calls"),
        (
            Variant(
                "closure",
                '''
from collections.abc import Callable


def make_counter(start: int = 0) -> Callable[[], int]:
    """Return a function that counts up with every call."""
    count = start

    def step() -> int:
        nonlocal count
        count += 1
        return count

    return step
''',
                ("nonlocal lets the inner function change the variable.",),
            ),
            Variant(
                "builtin",
                '''
from collections.abc import Callable
from itertools import count


def make_counter(start: int = 0) -> Callable[[], int]:
    """Return a function that counts up with every call."""
    return count(start + 1).__next__
''',
                ("itertools.count never ends.",),
                ("with itertools.count", "using itertools"),
            ),
            Variant(
                "generator",
                '''
from collections.abc import Callable, Iterator


def make_counter(start: int = 0) -> Callable[[], int]:
    """Return a function that counts up with every call."""

    def numbers() -> Iterator[int]:
        count = start
        while True:
            count += 1
            yield count

    return numbers().__next__
''',
                ("The generator keeps its place between two calls.",),
            ),
        ),
        ("counter() == 4", "f()() == 1", "f(7)() == 8"),
        each(number(1, 90)),
        "counter = f({0})\nprint(counter())\nprint(counter())",
        "counter = f(2)\nassert counter() == 3",
    ),
    Program(
        "apply_all",
        ("a map function", "a function that applies another to a list"),
        ("apply a function to every element of a list", "write map by hand"),
        (
            Variant(
                "comprehension",
                '''
from collections.abc import Callable


def apply_all(function: Callable, items: list) -> list:
    """Return the results of the function for every item."""
    return [function(item) for item in items]
''',
                ("The order of the list is kept.",),
            ),
            Variant(
                "loop",
                '''
from collections.abc import Callable


def apply_all(function: Callable, items: list) -> list:
    """Return the results of the function for every item."""
    results = []
    for item in items:
        results.append(function(item))
    return results
''',
                ("Each result is appended to a new list.",),
            ),
            Variant(
                "recursive",
                '''
from collections.abc import Callable


def apply_all(function: Callable, items: list) -> list:
    """Return the results of the function for every item."""
    if not items:
        return []
    return [function(items[0])] + apply_all(function, items[1:])
''',
                ("The first result comes before those of the rest.",),
            ),
        ),
        ("f(abs, [-1, 2]) == [1, 2]", "f(str, []) == []", 'f(len, ["a", "bb"]) == [1, 2]'),
        each(one_of("str", "float", "bin", "hex"), ints),
    ),
    Program(
        "countdown",
        ("a countdown", "a countdown generator"),
        ("count down to zero", "count backwards"),
        (
            Variant(
                "generator",
                '''
from collections.abc import Iterator


def countdown(start: int) -> Iterator[int]:
    """Yield the numbers from start down to zero."""
    while start >= 0:
        yield start
        start -= 1
''',
                ("The generator stops after zero.",),
            ),
            Variant(
                "recursive",
                '''
from collections.abc import Iterator


def countdown(start: int) -> Iterator[int]:
    """Yield the numbers from start down to zero."""
    if start >= 0:
        yield start
        yield from countdown(start - 1)
''',
                ("Each call yields one number and hands over to the next.",),
            ),
            Variant(
                "builtin",
                '''
from collections.abc import Iterator


def countdown(start: int) -> Iterator[int]:
    """Return the numbers from start down to zero."""
    return iter(range(start, -1, -1))
''',
                ("A range can count backwards.",),
                ("with range", "using range"),
            ),
        ),
        ("list(f(3)) == [3, 2, 1, 0]", "list(f(0)) == [0]"),
        each(number(4, 15)),
        "for number in f({0}):\n    print(number)",
    ),
    Program(
        "sliding_window",
        ("a sliding window", "a sliding window generator"),
        ("move a window over a list", "list all windows of a given size"),
        (
            Variant(
                "generator",
                '''
from collections.abc import Iterator


def sliding_window(items: list[int], size: int) -> Iterator[list[int]]:
    """Yield every run of size neighboring items."""
    for start in range(len(items) - size + 1):
        yield items[start : start + size]
''',
                ("The window moves one place at a time.",),
            ),
            Variant(
                "deque",
                '''
from collections import deque
from collections.abc import Iterator


def sliding_window(items: list[int], size: int) -> Iterator[list[int]]:
    """Yield every run of size neighboring items."""
    window: deque[int] = deque(maxlen=size)
    for item in items:
        window.append(item)
        if len(window) == size:
            yield list(window)
''',
                ("The deque forgets the oldest item by itself.",),
            ),
            Variant(
                "comprehension",
                '''
def sliding_window(items: list[int], size: int) -> list[list[int]]:
    """Return every run of size neighboring items."""
    return [items[i : i + size] for i in range(len(items) - size + 1)]
''',
                ("All windows are in one list.",),
            ),
        ),
        ("list(f([1, 2, 3], 2)) == [[1, 2], [2, 3]]", "list(f([1], 2)) == []", "list(f([4, 5], 1)) == [[4], [5]]"),
        each(ints, number(2, 4)),
        "items = {0}\nfor window in f(items, {1}):\n    print(window)",
        parameter="items",
    ),
    Program(
        "take",
        ("a take function", "a function that takes the first items of an iterator"),
        ("take the first n items of an iterator", "read only the first values of a generator"),
        (
            Variant(
                "builtin",
                '''
from collections.abc import Iterable
from itertools import islice


def take(items: Iterable, n: int) -> list:
    """Return the first n items."""
    return list(islice(items, n))
''',
                ("islice also works for endless iterators.",),
                ("with itertools.islice", "using islice"),
            ),
            Variant(
                "loop",
                '''
from collections.abc import Iterable


def take(items: Iterable, n: int) -> list:
    """Return the first n items."""
    result: list = []
    for item in items:
        if len(result) == n:
            break
        result.append(item)
    return result
''',
                ("The loop stops as soon as it has enough.",),
            ),
        ),
        ("f([1, 2, 3], 2) == [1, 2]", "f([], 3) == []", 'f("abc", 1) == ["a"]'),
        lambda rng: (f"range({rng.randint(2, 50)}, {rng.randint(60, 99)})", str(len(int_list(rng)) - 2)),
    ),
)
