"""Decorators."""

from __future__ import annotations

from ..program import Program, Variant
from ..values import each, number, one_of

PROGRAMS = (
    Program(
        "timer",
        ("a timer decorator", "a timing decorator"),
        ("measure the time of a function", "time function calls"),
        (
            Variant(
                "wrapper",
                '''
import time
from collections.abc import Callable
from functools import wraps


def timer(function: Callable) -> Callable:
    """Print how long each call takes."""

    @wraps(function)
    def wrapper(*args: object, **kwargs: object) -> object:
        start = time.perf_counter()
        result = function(*args, **kwargs)
        elapsed = time.perf_counter() - start
        print(f"{function.__name__} took {elapsed:.4f} seconds")
        return result

    return wrapper
''',
                ("wraps keeps the name and the docstring of the function.",),
                ("with functools.wraps", "with a wrapper function"),
            ),
            Variant(
                "class",
                '''
import time


class Stopwatch:
    """Measure the time of a with block."""

    def __enter__(self) -> "Stopwatch":
        self.start = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.elapsed = time.perf_counter() - self.start


def timer() -> Stopwatch:
    """Return a new stopwatch."""
    return Stopwatch()
''',
                ("The time is measured when the with block ends.",),
                ("as a context manager", "for a with statement"),
                usage='with f() as watch:\n    total = sum(range({0}))\nprint(f"{{watch.elapsed:.4f}} seconds")',
                setup="with f() as watch:\n    total = sum(range(10))",
                facts=("watch.elapsed >= 0", "total == 45"),
            ),
        ),
        ("double(4) == 8", 'double.__name__ == "double"'),
        each(number(1000, 99999)),
        "@f\ndef count(n):\n    return sum(range(n))\n\n\ncount({0})",
        "@f\ndef double(x):\n    return 2 * x\n\n",
        "decorator",
    ),
    Program(
        "memoize",
        ("a memoize decorator", "a cache decorator", "memoization"),
        ("cache the results of a function", "remember the results of function calls"),
        (
            Variant(
                "dict",
                '''
from collections.abc import Callable
from functools import wraps


def memoize(function: Callable) -> Callable:
    """Remember the result for each set of arguments."""
    results: dict = {}

    @wraps(function)
    def wrapper(*args: object) -> object:
        if args not in results:
            results[args] = function(*args)
        return results[args]

    return wrapper
''',
                ("Each result is computed only once.",),
            ),
            Variant(
                "class",
                '''
from collections.abc import Callable


class Memo(dict):
    """A dictionary that computes missing values."""

    def __init__(self, function: Callable) -> None:
        self.function = function

    def __call__(self, *args: object) -> object:
        return self[args]

    def __missing__(self, args: tuple) -> object:
        self[args] = self.function(*args)
        return self[args]


def memoize(function: Callable) -> Memo:
    """Remember the result for each set of arguments."""
    return Memo(function)
''',
                ("A missing key calls the function.",),
                ("with a dict subclass", "using __missing__"),
            ),
        ),
        ("fib(30) == 832040", "fib(1) == 1", "fib(10) == 55"),
        each(number(20, 60)),
        "@f\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\n\nprint(fib({0}))",
        "@f\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\n",
        "decorator",
    ),
    Program(
        "repeat",
        ("a repeat decorator", "a decorator that repeats a function"),
        ("call a function several times", "repeat every call of a function"),
        (
            Variant(
                "wrapper",
                '''
from collections.abc import Callable
from functools import wraps


def repeat(times: int) -> Callable:
    """Call the function several times and return the results."""

    def decorate(function: Callable) -> Callable:
        @wraps(function)
        def wrapper(*args: object) -> list:
            return [function(*args) for _ in range(times)]

        return wrapper

    return decorate
''',
                ("A decorator with an argument needs one more level of functions.",),
                ("with an argument", "with nested functions"),
            ),
            Variant(
                "class",
                '''
from collections.abc import Callable


class Repeated:
    """A function that is called several times."""

    def __init__(self, function: Callable, times: int) -> None:
        self.function = function
        self.times = times

    def __call__(self, *args: object) -> list:
        return [self.function(*args) for _ in range(self.times)]


def repeat(times: int) -> Callable:
    """Return a decorator that calls its function several times."""
    return lambda function: Repeated(function, times)
''',
                ("The special method makes objects callable.",),
            ),
        ),
        ('greet("Bob") == ["Hi Bob", "Hi Bob"]', 'len(greet("Ada")) == 2'),
        each(number(2, 5), one_of('"Ada"', '"Grace"', '"Linus"', '"Mia"', '"Leo"', '"Nina"')),
        '@f({0})\ndef greet(name):\n    return f"Hi {{name}}"\n\n\nprint(greet({1}))',
        '@f(2)\ndef greet(name):\n    return f"Hi {name}"\n\n',
        "decorator",
    ),
    Program(
        "retry",
        ("a retry decorator", "a retry function"),
        ("retry a function when it fails", "try a function again after an error"),
        (
            Variant(
                "wrapper",
                '''
from collections.abc import Callable
from functools import wraps


def retry(attempts: int) -> Callable:
    """Call the function again when it raises, up to attempts times."""

    def decorate(function: Callable) -> Callable:
        @wraps(function)
        def wrapper(*args: object) -> object:
            for attempt in range(1, attempts + 1):
                try:
                    return function(*args)
                except Exception:
                    if attempt == attempts:
                        raise

        return wrapper

    return decorate
''',
                ("The last error is raised again.",),
                ("with an argument", "with nested functions"),
            ),
            Variant(
                "recursive",
                '''
from collections.abc import Callable
from functools import wraps


def retry(attempts: int) -> Callable:
    """Call the function again when it raises, up to attempts times."""

    def decorate(function: Callable) -> Callable:
        @wraps(function)
        def wrapper(*args: object) -> object:
            try:
                return function(*args)
            except Exception:
                if attempts == 1:
                    raise
                return retry(attempts - 1)(function)(*args)

        return wrapper

    return decorate
''',
                ("Each failure leaves one attempt less.",),
            ),
        ),
        ("parse() == 3", "len(errors) == 2"),
        each(number(3, 6)),
        'replies = ["no", "maybe", "7"]\n\n\n@f({0})\ndef parse():\n    return int(replies.pop(0))\n\n\nprint(parse())',
        'errors = []\n\n\n@f(3)\ndef parse():\n    if len(errors) < 2:\n        errors.append("failed")\n'
        '        raise ValueError("try again")\n    return 3\n\n\nassert parse() == 3\n',
        "decorator",
    ),
)
