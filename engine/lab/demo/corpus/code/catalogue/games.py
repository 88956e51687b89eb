"""The logic of small games."""

from __future__ import annotations

import random

from ..program import Program, Variant
from ..values import each, number, one_of

MARKS = ('"X"', '"O"', '" "')


def board(rng: random.Random) -> str:
    cells = [rng.choice(MARKS) for _ in range(9)]
    if rng.random() < 0.6:
        winner = rng.choice(MARKS[:2])
        for i in rng.choice(((0, 1, 2), (3, 4, 5), (0, 3, 6), (2, 5, 8), (0, 4, 8), (2, 4, 6))):
            cells[i] = winner
    return "[" + ", ".join(cells) + "]"


PROGRAMS = (
    Program(
        "fizzbuzz",
        ("a fizzbuzz", "fizzbuzz", "fizz buzz", "FizzBuzz", "the FizzBuzz program"),
        ("solve FizzBuzz", "play fizz buzz up to n"),
        (
            Variant(
                "loop",
                '''
def fizzbuzz(n: int) -> list[str]:
    """Return the answers for 1 to n."""
    result = []
    for i in range(1, n + 1):
        if i % 15 == 0:
            result.append("FizzBuzz")
        elif i % 3 == 0:
            result.append("Fizz")
        elif i % 5 == 0:
            result.append("Buzz")
        else:
            result.append(str(i))
    return result
''',
                ("Multiples of fifteen come first, because they are multiples of both.",),
            ),
            Variant(
                "one_line",
                '''
def fizzbuzz(n: int) -> list[str]:
    """Return the answers for 1 to n."""
    return ["Fizz" * (i % 3 == 0) + "Buzz" * (i % 5 == 0) or str(i) for i in range(1, n + 1)]
''',
                ("A text times False is empty, so the number is used instead.",),
            ),
            Variant(
                "generator",
                '''
from collections.abc import Iterator


def fizzbuzz(n: int) -> Iterator[str]:
    """Yield the answers for 1 to n."""
    for i in range(1, n + 1):
        answer = ""
        if i % 3 == 0:
            answer += "Fizz"
        if i % 5 == 0:
            answer += "Buzz"
        yield answer or str(i)
''',
                ("An empty answer is replaced by the number.",),
                facts=('list(f(3)) == ["1", "2", "Fizz"]', 'list(f(15))[-1] == "FizzBuzz"', "list(f(0)) == []"),
            ),
        ),
        ('f(3) == ["1", "2", "Fizz"]', 'f(5)[4] == "Buzz"', 'f(15)[-1] == "FizzBuzz"', "f(0) == []"),
        each(number(10, 40)),
        "for line in f({0}):\n    print(line)",
    ),
    Program(
        "roll_dice",
        ("a dice roller", "a dice function"),
        ("roll dice", "roll some dice and add them up"),
        (
            Variant(
                "comprehension",
                '''
import random


def roll_dice(count: int, sides: int = 6) -> list[int]:
    """Return the results of some dice."""
    return [random.randint(1, sides) for _ in range(count)]
''',
                ("Each die shows a number from one to its number of sides.",),
            ),
            Variant(
                "loop",
                '''
import random


def roll_dice(count: int, sides: int = 6) -> list[int]:
    """Return the results of some dice."""
    results = []
    while len(results) < count:
        results.append(random.randint(1, sides))
    return results
''',
                ("It rolls until there are enough results.",),
            ),
        ),
        ("len(f(3)) == 3", "all(1 <= value <= 6 for value in f(20))", "f(2, 1) == [1, 1]"),
        each(number(2, 6), one_of("6", "8", "10", "12", "20")),
        "dice = f({0}, {1})\nprint(dice, sum(dice))",
    ),
    Program(
        "winner",
        ("a tic tac toe winner check", "a tic-tac-toe check"),
        ("find the winner of tic tac toe", "check who won tic tac toe"),
        (
            Variant(
                "loop",
                '''
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def winner(board: list[str]) -> str | None:
    """Return who has three in a row on a board of nine cells."""
    for a, b, c in LINES:
        if board[a] != " " and board[a] == board[b] == board[c]:
            return board[a]
    return None
''',
                ("There are eight lines that win.",),
            ),
            Variant(
                "slicing",
                '''
def winner(board: list[str]) -> str | None:
    """Return who has three in a row on a board of nine cells."""
    rows = [board[i : i + 3] for i in (0, 3, 6)]
    columns = [board[i::3] for i in range(3)]
    diagonals = [board[::4], board[2:7:2]]
    for mark in ("X", "O"):
        if [mark] * 3 in rows + columns + diagonals:
            return mark
    return None
''',
                ("Slices give the rows, columns and diagonals.",),
            ),
        ),
        ('f(["X"] * 3 + [" "] * 6) == "X"', 'f([" "] * 9) is None', 'f(["O", " ", " "] * 3) == "O"'),
        each(board),
        "board = {0}\nprint(f(board))",
    ),
    Program(
        "play_round",
        ("a rock paper scissors game", "rock paper scissors"),
        ("decide a round of rock paper scissors", "play rock paper scissors"),
        (
            Variant(
                "dict",
                '''
BEATS = {"rock": "scissors", "scissors": "paper", "paper": "rock"}


def play_round(first: str, second: str) -> str:
    """Return who wins a round."""
    if first == second:
        return "draw"
    return "first" if BEATS[first] == second else "second"
''',
                ("The dictionary says what each choice beats.",),
            ),
            Variant(
                "arithmetic",
                '''
CHOICES = ["rock", "paper", "scissors"]


def play_round(first: str, second: str) -> str:
    """Return who wins a round."""
    difference = (CHOICES.index(first) - CHOICES.index(second)) % 3
    return ["draw", "first", "second"][difference]
''',
                ("Each choice beats the one before it in the circle.",),
                ("with arithmetic", "with the modulo operator"),
            ),
        ),
        ('f("rock", "scissors") == "first"', 'f("rock", "paper") == "second"', 'f("paper", "paper") == "draw"'),
        each(one_of('"rock"', '"paper"', '"scissors"'), one_of('"rock"', '"paper"', '"scissors"')),
    ),
    Program(
        "hint",
        ("a number guessing hint", "a guessing game"),
        ("give a hint in a guessing game", "tell whether a guess is too low or too high"),
        (
            Variant(
                "branches",
                '''
def hint(secret: int, guess: int) -> str:
    """Tell whether the guess is too low or too high."""
    if guess < secret:
        return "too low"
    if guess > secret:
        return "too high"
    return "correct"
''',
                ("Call it in a loop to build the whole game.",),
                ("with if statements", "step by step"),
            ),
            Variant(
                "one_line",
                '''
def hint(secret: int, guess: int) -> str:
    """Tell whether the guess is too low or too high."""
    return "too low" if guess < secret else "too high" if guess > secret else "correct"
''',
                ("The three cases fit into one expression.",),
            ),
        ),
        ('f(5, 3) == "too low"', 'f(5, 8) == "too high"', 'f(5, 5) == "correct"'),
        each(number(1, 99), number(1, 99)),
    ),
)
