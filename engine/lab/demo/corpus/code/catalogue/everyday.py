"""Everyday utilities."""

from __future__ import annotations

from ..program import Program, Variant
from ..values import WORDS, each, number, person

PROGRAMS = (
    Program(
        "is_leap_year",
        ("a leap year check", "a leap year function"),
        ("check whether a year is a leap year", "test if a year is a leap year"),
        (
            Variant(
                "one_line",
                '''
def is_leap_year(year: int) -> bool:
    """Tell whether a year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
''',
                ("Full centuries are leap years only when 400 divides them.",),
            ),
            Variant(
                "branches",
                '''
def is_leap_year(year: int) -> bool:
    """Tell whether a year has 366 days."""
    if year % 400 == 0:
        return True
    if year % 100 == 0:
        return False
    return year % 4 == 0
''',
                ("The rarest rule is tested first.",),
                ("with if statements", "step by step"),
            ),
        ),
        ("f(2024)", "f(2000)", "not f(1900)", "not f(2023)"),
        each(number(1896, 2032)),
    ),
    Program(
        "grade",
        ("a grading function", "a function for school grades"),
        ("turn a score into a letter grade", "compute a letter grade"),
        (
            Variant(
                "branches",
                '''
def grade(score: int) -> str:
    """Return the letter for a score of 0 to 100."""
    if score >= 90:
        return "A"
    if score >= 80:
        return "B"
    if score >= 70:
        return "C"
    if score >= 60:
        return "D"
    return "F"
''',
                ("The first limit that is reached decides.",),
                ("with if statements", "step by step"),
            ),
            Variant(
                "loop",
                '''
def grade(score: int) -> str:
    """Return the letter for a score of 0 to 100."""
    for limit, letter in ((90, "A"), (80, "B"), (70, "C"), (60, "D")):
        if score >= limit:
            return letter
    return "F"
''',
                ("New limits only need another pair.",),
            ),
            Variant(
                "bisect",
                '''
from bisect import bisect


def grade(score: int) -> str:
    """Return the letter for a score of 0 to 100."""
    return "FDCBA"[bisect([60, 70, 80, 90], score)]
''',
                ("bisect counts how many limits are reached.",),
                ("with the bisect module", "using bisect"),
            ),
        ),
        ('f(95) == "A"', 'f(80) == "B"', 'f(79) == "C"', 'f(60) == "D"', 'f(12) == "F"'),
        each(number(35, 100)),
    ),
    Program(
        "is_strong",
        ("a password check", "a password strength checker"),
        ("check whether a password is strong", "test the strength of a password"),
        (
            Variant(
                "builtin",
                '''
def is_strong(password: str) -> bool:
    """Tell whether a password is long and mixes letters and digits."""
    return (
        len(password) >= 8
        and any(char.isdigit() for char in password)
        and any(char.isupper() for char in password)
        and any(char.islower() for char in password)
    )
''',
                ("It wants eight characters, a digit and both cases.",),
                ("with any", "using any"),
            ),
            Variant(
                "regex",
                '''
import re


def is_strong(password: str) -> bool:
    """Tell whether a password is long and mixes letters and digits."""
    patterns = (r".{8,}", r"[0-9]", r"[A-Z]", r"[a-z]")
    return all(re.search(pattern, password) for pattern in patterns)
''',
                ("Every pattern must be found.",),
                ("with regular expressions", "using the re module"),
            ),
        ),
        ('f("Passw0rd")', 'not f("short1A")', 'not f("alllowercase1")', 'not f("NoDigitsHere")', 'f("abcD1234")'),
        each(lambda rng: f'"{rng.choice(WORDS).capitalize()}{rng.choice(("", "42", "2024", "Tree", "7x"))}"'),
    ),
    Program(
        "make_password",
        ("a password generator", "a random password function"),
        ("make a random password", "generate a password"),
        (
            Variant(
                "builtin",
                '''
import random
import string


def make_password(length: int) -> str:
    """Return random letters and digits."""
    characters = string.ascii_letters + string.digits
    return "".join(random.choices(characters, k=length))
''',
                ("For real passwords use the secrets module.",),
                ("with random.choices", "using the random module"),
            ),
            Variant(
                "loop",
                '''
import random
import string


def make_password(length: int) -> str:
    """Return random letters and digits."""
    characters = string.ascii_letters + string.digits
    password = ""
    for _ in range(length):
        password += random.choice(characters)
    return password
''',
                ("For real passwords use the secrets module.",),
            ),
        ),
        ("len(f(12)) == 12", 'f(0) == ""', "f(50).isalnum()"),
        each(number(8, 24)),
    ),
    Program(
        "greet",
        ("a greeting function", "a hello function"),
        ("greet a person by name", "say hello to someone"),
        (
            Variant(
                "fstring",
                '''
def greet(name: str) -> str:
    """Return a friendly greeting."""
    return f"Hello, {name}!"
''',
                ("The f-string puts the name into the text.",),
                ("with an f-string", "using an f-string"),
            ),
            Variant(
                "default",
                '''
def greet(name: str = "World") -> str:
    """Return a friendly greeting."""
    return "Hello, " + name + "!"
''',
                ("Without a name it greets the world.",),
                ("with a default name", "with a default argument"),
            ),
        ),
        ('f("Ada") == "Hello, Ada!"', 'f("Bob").endswith("!")', 'f("Mia") == "Hello, Mia!"'),
        each(person),
    ),
    Program(
        "clamp",
        ("a clamp function", "a function that limits a number"),
        ("limit a number to a range", "clamp a value between two limits"),
        (
            Variant(
                "builtin",
                '''
def clamp(value: int, low: int, high: int) -> int:
    """Return the value, limited to low and high."""
    return max(low, min(value, high))
''',
                ("min keeps it below the upper limit and max above the lower one.",),
                ("with min and max", "in one line"),
            ),
            Variant(
                "branches",
                '''
def clamp(value: int, low: int, high: int) -> int:
    """Return the value, limited to low and high."""
    if value < low:
        return low
    if value > high:
        return high
    return value
''',
                ("A value inside the range is returned as it is.",),
                ("with if statements", "step by step"),
            ),
        ),
        ("f(5, 1, 10) == 5", "f(-3, 0, 9) == 0", "f(42, 0, 9) == 9"),
        each(number(-20, 60), number(0, 9), number(20, 40)),
    ),
    Program(
        "swap",
        ("a swap of two variables", "a swap function"),
        ("swap two variables", "exchange two values"),
        (
            Variant(
                "tuple",
                '''
def swap(a: int, b: int) -> tuple[int, int]:
    """Return both values in the other order."""
    a, b = b, a
    return a, b
''',
                ("The right side is evaluated before anything is assigned.",),
                ("with a tuple", "without a temporary variable"),
            ),
            Variant(
                "temporary",
                '''
def swap(a: int, b: int) -> tuple[int, int]:
    """Return both values in the other order."""
    temporary = a
    a = b
    b = temporary
    return a, b
''',
                ("The third variable keeps the first value.",),
                ("with a temporary variable", "with a third variable"),
            ),
            Variant(
                "bits",
                '''
def swap(a: int, b: int) -> tuple[int, int]:
    """Return both values in the other order."""
    a ^= b
    b ^= a
    a ^= b
    return a, b
''',
                ("Three times xor exchanges two whole numbers.",),
                ("with xor", "using xor", "with bit operations"),
            ),
        ),
        ("f(1, 2) == (2, 1)", "f(5, 5) == (5, 5)", "f(0, 9) == (9, 0)"),
        each(number(1, 99), number(1, 99)),
    ),
)
