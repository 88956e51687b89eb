"""Primes, divisors and what is built from them."""

from __future__ import annotations

from ..program import Program, Variant
from ..values import each, number

PRIMES = each(number(10, 60))

PROGRAMS = (
    Program(
        "is_prime",
        ("a prime check", "a primality test", "an is_prime function"),
        ("check whether a number is prime", "test if a number is prime"),
        (
            Variant(
                "loop",
                '''
def is_prime(n: int) -> bool:
    """Tell whether n is a prime number."""
    if n < 2:
        return False
    for divisor in range(2, int(n**0.5) + 1):
        if n % divisor == 0:
            return False
    return True
''',
                ("Only divisors up to the square root matter.", "It stops at the first divisor that fits."),
            ),
            Variant(
                "one_line",
                '''
def is_prime(n: int) -> bool:
    """Tell whether n is a prime number."""
    return n > 1 and all(n % divisor for divisor in range(2, int(n**0.5) + 1))
''',
                ("all stops as soon as a divisor fits.",),
                ("in one line", "with all", "as a one-liner"),
            ),
            Variant(
                "while",
                '''
def is_prime(n: int) -> bool:
    """Tell whether n is a prime number."""
    if n < 4:
        return n > 1
    if n % 2 == 0:
        return False
    divisor = 3
    while divisor * divisor <= n:
        if n % divisor == 0:
            return False
        divisor += 2
    return True
''',
                ("Even divisors are tested only once.",),
            ),
        ),
        ("f(2)", "f(7)", "f(97)", "not f(1)", "not f(9)", "not f(91)", "not f(0)"),
        each(number(2, 199)),
    ),
    Program(
        "primes_up_to",
        ("a prime sieve", "the sieve of Eratosthenes", "a list of primes"),
        ("list all primes up to a limit", "find the primes with a sieve"),
        (
            Variant(
                "sieve",
                '''
def primes_up_to(limit: int) -> list[int]:
    """Return all primes up to limit."""
    is_prime = [True] * (limit + 1)
    is_prime[:2] = [False, False]
    for n in range(2, int(limit**0.5) + 1):
        if is_prime[n]:
            for multiple in range(n * n, limit + 1, n):
                is_prime[multiple] = False
    return [n for n in range(limit + 1) if is_prime[n]]
''',
                ("The sieve crosses out the multiples of every prime.", "It is much faster than testing each number."),
                ("with a sieve", "using the sieve of Eratosthenes"),
            ),
            Variant(
                "loop",
                '''
def primes_up_to(limit: int) -> list[int]:
    """Return all primes up to limit."""
    primes: list[int] = []
    for n in range(2, limit + 1):
        if all(n % prime for prime in primes):
            primes.append(n)
    return primes
''',
                ("A number is prime when no smaller prime divides it.",),
                ("by trial division", "without a sieve", "with a loop"),
            ),
            Variant(
                "set",
                '''
def primes_up_to(limit: int) -> list[int]:
    """Return all primes up to limit."""
    composite = {m for n in range(2, int(limit**0.5) + 1) for m in range(n * n, limit + 1, n)}
    return [n for n in range(2, limit + 1) if n not in composite]
''',
                ("The set holds every number with a smaller divisor.",),
            ),
        ),
        ("f(10) == [2, 3, 5, 7]", "f(2) == [2]", "f(20) == [2, 3, 5, 7, 11, 13, 17, 19]", "f(3) == [2, 3]"),
        PRIMES,
    ),
    Program(
        "prime_factors",
        ("a prime factorization", "a function for prime factors"),
        ("split a number into prime factors", "find the prime factors of a number"),
        (
            Variant(
                "while",
                '''
def prime_factors(n: int) -> list[int]:
    """Return the prime factors of n in ascending order."""
    factors = []
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    if n > 1:
        factors.append(n)
    return factors
''',
                ("What is left at the end is the largest prime factor.",),
            ),
            Variant(
                "recursive",
                '''
def prime_factors(n: int, divisor: int = 2) -> list[int]:
    """Return the prime factors of n in ascending order."""
    if n < 2:
        return []
    if divisor * divisor > n:
        return [n]
    if n % divisor == 0:
        return [divisor] + prime_factors(n // divisor, divisor)
    return prime_factors(n, divisor + 1)
''',
                ("Each call removes one factor or tries the next divisor.",),
            ),
            Variant(
                "counter",
                '''
from collections import Counter


def prime_factors(n: int) -> Counter[int]:
    """Return how often each prime divides n."""
    factors: Counter[int] = Counter()
    divisor = 2
    while n > 1:
        while n % divisor == 0:
            factors[divisor] += 1
            n //= divisor
        divisor += 1
    return factors
''',
                ("The Counter maps each prime to its exponent.",),
                ("as a Counter", "with collections.Counter", "with exponents"),
                facts=("f(12) == {2: 2, 3: 1}", "f(13) == {13: 1}", "f(8) == {2: 3}"),
            ),
        ),
        ("f(12) == [2, 2, 3]", "f(13) == [13]", "f(8) == [2, 2, 2]", "f(90) == [2, 3, 3, 5]"),
        each(number(12, 999)),
    ),
    Program(
        "gcd",
        ("a gcd function", "the greatest common divisor", "the Euclidean algorithm"),
        ("find the greatest common divisor", "compute the gcd of two numbers"),
        (
            Variant(
                "while",
                '''
def gcd(a: int, b: int) -> int:
    """Return the greatest common divisor of a and b."""
    while b:
        a, b = b, a % b
    return a
''',
                ("This is the algorithm of Euclid.", "When the remainder is zero, a is the answer."),
                ("with a while loop", "with a loop", "without recursion"),
            ),
            Variant(
                "recursive",
                '''
def gcd(a: int, b: int) -> int:
    """Return the greatest common divisor of a and b."""
    if b == 0:
        return a
    return gcd(b, a % b)
''',
                ("Each call replaces the pair by a smaller one.",),
            ),
            Variant(
                "subtraction",
                '''
def gcd(a: int, b: int) -> int:
    """Return the greatest common divisor of two positive numbers."""
    while a != b:
        if a > b:
            a -= b
        else:
            b -= a
    return a
''',
                ("It subtracts the smaller number until both are equal.",),
                ("by subtraction", "with subtraction only", "without the modulo operator"),
            ),
        ),
        ("f(12, 18) == 6", "f(7, 5) == 1", "f(100, 75) == 25", "f(9, 9) == 9", "f(8, 32) == 8"),
        each(number(12, 120), number(12, 120)),
    ),
    Program(
        "lcm",
        ("an lcm function", "the least common multiple"),
        ("find the least common multiple", "compute the lcm of two numbers"),
        (
            Variant(
                "builtin",
                '''
from math import gcd


def lcm(a: int, b: int) -> int:
    """Return the least common multiple of a and b."""
    return a * b // gcd(a, b)
''',
                ("The product divided by the gcd is the least common multiple.",),
                ("with math.gcd", "using the gcd", "with the standard library"),
            ),
            Variant(
                "loop",
                '''
def lcm(a: int, b: int) -> int:
    """Return the least common multiple of a and b."""
    multiple = max(a, b)
    while multiple % a or multiple % b:
        multiple += max(a, b)
    return multiple
''',
                ("It tries the multiples of the larger number.",),
                ("with a while loop", "with a loop"),
            ),
        ),
        ("f(4, 6) == 12", "f(3, 5) == 15", "f(7, 7) == 7", "f(2, 8) == 8"),
        each(number(2, 30), number(2, 30)),
    ),
    Program(
        "divisors",
        ("a list of divisors", "a function for the divisors"),
        ("find all divisors of a number", "list the numbers that divide n"),
        (
            Variant(
                "comprehension",
                '''
def divisors(n: int) -> list[int]:
    """Return all numbers that divide n, in ascending order."""
    return [d for d in range(1, n + 1) if n % d == 0]
''',
                ("It tests every number up to n.",),
            ),
            Variant(
                "loop",
                '''
def divisors(n: int) -> list[int]:
    """Return all numbers that divide n, in ascending order."""
    small, large = [], []
    for d in range(1, int(n**0.5) + 1):
        if n % d == 0:
            small.append(d)
            if d != n // d:
                large.append(n // d)
    return small + large[::-1]
''',
                ("Divisors come in pairs, so the square root is far enough.",),
                ("with a loop", "with a fast loop", "up to the square root"),
            ),
        ),
        ("f(12) == [1, 2, 3, 4, 6, 12]", "f(1) == [1]", "f(7) == [1, 7]", "f(9) == [1, 3, 9]"),
        each(number(12, 200)),
    ),
    Program(
        "is_perfect",
        ("a perfect number check", "a test for perfect numbers"),
        ("check whether a number is perfect", "test if a number equals the sum of its divisors"),
        (
            Variant(
                "one_line",
                '''
def is_perfect(n: int) -> bool:
    """Tell whether n equals the sum of its proper divisors."""
    return n > 1 and sum(d for d in range(1, n) if n % d == 0) == n
''',
                ("Six is the smallest perfect number.",),
            ),
            Variant(
                "loop",
                '''
def is_perfect(n: int) -> bool:
    """Tell whether n equals the sum of its proper divisors."""
    total = 0
    for d in range(1, n // 2 + 1):
        if n % d == 0:
            total += d
    return n > 0 and total == n
''',
                ("No proper divisor is larger than half of n.",),
            ),
        ),
        ("f(6)", "f(28)", "not f(12)", "not f(1)", "f(496)"),
        each(number(5, 99)),
    ),
)
