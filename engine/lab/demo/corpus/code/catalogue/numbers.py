"""Sequences, digits, powers and averages."""

from __future__ import annotations

from ..program import NUMBERS_USAGE, Program, Variant
from ..values import each, ints, number

PROGRAMS = (
    Program(
        "factorial",
        ("a factorial function", "the factorial", "a factorial"),
        ("compute the factorial of a number", "calculate n factorial"),
        (
            Variant(
                "recursive",
                '''
def factorial(n: int) -> int:
    """Return 1 * 2 * ... * n."""
    if n <= 1:
        return 1
    return n * factorial(n - 1)
''',
                ("The recursion ends at one.", "For zero the answer is one."),
            ),
            Variant(
                "loop",
                '''
def factorial(n: int) -> int:
    """Return 1 * 2 * ... * n."""
    result = 1
    for factor in range(2, n + 1):
        result *= factor
    return result
''',
                ("The loop multiplies the factors one by one.",),
                ("with a loop", "with a for loop", "without recursion"),
            ),
            Variant(
                "reduce",
                '''
from functools import reduce
from operator import mul


def factorial(n: int) -> int:
    """Return 1 * 2 * ... * n."""
    return reduce(mul, range(1, n + 1), 1)
''',
                ("reduce multiplies all numbers of the range.",),
            ),
            Variant(
                "builtin",
                '''
from math import prod


def factorial(n: int) -> int:
    """Return 1 * 2 * ... * n."""
    return prod(range(1, n + 1))
''',
                ("The product of an empty range is one.",),
                ("with math.prod", "in one line", "with the standard library"),
            ),
        ),
        ("f(5) == 120", "f(0) == 1", "f(1) == 1", "f(3) == 6", "f(6) == 720"),
        each(number(4, 15)),
    ),
    Program(
        "fibonacci",
        ("a fibonacci function", "the fibonacci numbers", "the Fibonacci sequence"),
        ("compute the n-th fibonacci number", "calculate fibonacci numbers"),
        (
            Variant(
                "loop",
                '''
def fibonacci(n: int) -> int:
    """Return the n-th Fibonacci number, counted from zero."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a
''',
                ("Two variables are all it needs.", "Each step moves both numbers one place on."),
                ("with a loop", "iteratively", "without recursion"),
            ),
            Variant(
                "recursive",
                '''
def fibonacci(n: int) -> int:
    """Return the n-th Fibonacci number, counted from zero."""
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)
''',
                ("This is elegant, but slow for large n.",),
            ),
            Variant(
                "memo",
                '''
from functools import cache


@cache
def fibonacci(n: int) -> int:
    """Return the n-th Fibonacci number, counted from zero."""
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)
''',
                ("The cache makes sure that each value is computed once.",),
            ),
            Variant(
                "generator",
                '''
from collections.abc import Iterator


def fibonacci(n: int) -> Iterator[int]:
    """Yield the first n Fibonacci numbers."""
    a, b = 0, 1
    for _ in range(n):
        yield a
        a, b = b, a + b
''',
                ("The generator produces one number at a time.",),
                usage="print(list(f({0})))",
                facts=("list(f(6)) == [0, 1, 1, 2, 3, 5]", "list(f(1)) == [0]", "list(f(0)) == []"),
            ),
        ),
        ("f(0) == 0", "f(1) == 1", "f(2) == 1", "f(10) == 55", "f(7) == 13"),
        each(number(6, 25)),
    ),
    Program(
        "collatz",
        ("the Collatz sequence", "a collatz function"),
        ("list the Collatz sequence of a number", "compute the Collatz steps of a number"),
        (
            Variant(
                "while",
                '''
def collatz(n: int) -> list[int]:
    """Return the Collatz sequence from n down to 1."""
    sequence = [n]
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        sequence.append(n)
    return sequence
''',
                ("Even numbers are halved and odd ones become 3n + 1.", "It ends when it reaches one."),
            ),
            Variant(
                "recursive",
                '''
def collatz(n: int) -> list[int]:
    """Return the Collatz sequence from n down to 1."""
    if n == 1:
        return [1]
    following = n // 2 if n % 2 == 0 else 3 * n + 1
    return [n] + collatz(following)
''',
                ("Each call adds one number in front of the rest.",),
            ),
            Variant(
                "generator",
                '''
from collections.abc import Iterator


def collatz(n: int) -> Iterator[int]:
    """Yield the Collatz sequence from n down to 1."""
    while n != 1:
        yield n
        n = n // 2 if n % 2 == 0 else 3 * n + 1
    yield 1
''',
                ("The generator yields each number as it goes.",),
                usage="print(list(f({0})))",
                facts=("list(f(6)) == [6, 3, 10, 5, 16, 8, 4, 2, 1]", "list(f(1)) == [1]", "list(f(4)) == [4, 2, 1]"),
            ),
        ),
        ("f(1) == [1]", "f(4) == [4, 2, 1]", "f(6) == [6, 3, 10, 5, 16, 8, 4, 2, 1]"),
        each(number(3, 40)),
    ),
    Program(
        "digit_sum",
        ("a digit sum", "a sum of digits", "a cross sum function"),
        ("add up the digits of a number", "compute the digit sum"),
        (
            Variant(
                "one_line",
                '''
def digit_sum(n: int) -> int:
    """Return the sum of the decimal digits of n."""
    return sum(int(digit) for digit in str(n))
''',
                ("The number becomes text and each digit a number again.",),
                ("in one line", "using str", "as a one-liner"),
            ),
            Variant(
                "while",
                '''
def digit_sum(n: int) -> int:
    """Return the sum of the decimal digits of n."""
    total = 0
    while n > 0:
        total += n % 10
        n //= 10
    return total
''',
                ("The remainder of ten is the last digit.",),
            ),
            Variant(
                "recursive",
                '''
def digit_sum(n: int) -> int:
    """Return the sum of the decimal digits of n."""
    if n < 10:
        return n
    return n % 10 + digit_sum(n // 10)
''',
                ("The last digit is added to the sum of the others.",),
            ),
        ),
        ("f(123) == 6", "f(0) == 0", "f(9) == 9", "f(1001) == 2", "f(99) == 18"),
        each(number(100, 99999)),
    ),
    Program(
        "reverse_number",
        ("a number reversal", "a function that reverses a number"),
        ("reverse the digits of a number", "turn a number around"),
        (
            Variant(
                "while",
                '''
def reverse_number(n: int) -> int:
    """Return n with its decimal digits reversed."""
    result = 0
    while n > 0:
        result = result * 10 + n % 10
        n //= 10
    return result
''',
                ("Each step moves the last digit to the result.",),
            ),
            Variant(
                "slicing",
                '''
def reverse_number(n: int) -> int:
    """Return n with its decimal digits reversed."""
    return int(str(n)[::-1])
''',
                ("The slice walks through the digits backwards.",),
            ),
        ),
        ("f(123) == 321", "f(7) == 7", "f(100) == 1", "f(45) == 54"),
        each(number(100, 99999)),
    ),
    Program(
        "power",
        ("a power function", "fast exponentiation"),
        ("raise a number to a power", "compute powers by squaring"),
        (
            Variant(
                "loop",
                '''
def power(base: int, exponent: int) -> int:
    """Return the product of exponent factors base."""
    result = 1
    while exponent > 0:
        if exponent % 2 == 1:
            result *= base
        base *= base
        exponent //= 2
    return result
''',
                ("Squaring halves the exponent in each step.",),
                ("with a loop", "with a while loop", "by squaring"),
            ),
            Variant(
                "recursive",
                '''
def power(base: int, exponent: int) -> int:
    """Return the product of exponent factors base."""
    if exponent == 0:
        return 1
    half = power(base, exponent // 2)
    if exponent % 2 == 0:
        return half * half
    return half * half * base
''',
                ("Each call halves the exponent.",),
            ),
        ),
        ("f(2, 10) == 1024", "f(3, 0) == 1", "f(5, 1) == 5", "f(3, 4) == 81"),
        each(number(2, 12), number(2, 10)),
    ),
    Program(
        "average",
        ("an average function", "the average of a list", "a mean function"),
        ("compute the average of a list", "calculate the mean of some numbers"),
        (
            Variant(
                "builtin",
                '''
def average(numbers: list[int]) -> float:
    """Return the mean of a list that is not empty."""
    return sum(numbers) / len(numbers)
''',
                ("The sum divided by the length is the mean.",),
            ),
            Variant(
                "loop",
                '''
def average(numbers: list[int]) -> float:
    """Return the mean of a list that is not empty."""
    total = 0
    for number in numbers:
        total += number
    return total / len(numbers)
''',
                ("The loop adds up the numbers by hand.",),
                ("with a loop", "without sum"),
            ),
        ),
        ("f([1, 2, 3]) == 2", "f([5]) == 5", "f([2, 4]) == 3", "f([1, 2]) == 1.5"),
        each(ints),
        NUMBERS_USAGE,
        parameter="numbers",
    ),
    Program(
        "median",
        ("a median function", "the median of a list"),
        ("find the median of a list", "compute the median of some numbers"),
        (
            Variant(
                "sorted",
                '''
def median(numbers: list[int]) -> float:
    """Return the middle value, or the mean of the two in the middle."""
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
''',
                ("For an even count it is the mean of the two middle values.",),
            ),
            Variant(
                "recursive",
                '''
def median(numbers: list[int]) -> float:
    """Return the middle value, or the mean of the two in the middle."""
    ordered = sorted(numbers)
    if len(ordered) <= 2:
        return sum(ordered) / len(ordered)
    return median(ordered[1:-1])
''',
                ("It drops the smallest and the largest value until the middle is left.",),
            ),
        ),
        ("f([3, 1, 2]) == 2", "f([4, 1, 3, 2]) == 2.5", "f([7]) == 7", "f([5, 9]) == 7"),
        each(ints),
        NUMBERS_USAGE,
        parameter="numbers",
    ),
)
