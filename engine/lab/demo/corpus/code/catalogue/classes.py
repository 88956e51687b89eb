"""Small classes of everyday things."""

from __future__ import annotations

import random

from ..program import Program, Variant
from ..values import NAMES, WORDS, quoted


def amounts(rng: random.Random) -> tuple[str, ...]:
    return str(rng.randrange(50, 500, 10)), str(rng.randrange(10, 50, 5))


PROGRAMS = (
    Program(
        "BankAccount",
        ("a bank account class", "a bank account"),
        ("model a bank account", "keep track of a bank balance"),
        (
            Variant(
                "class",
                '''
class BankAccount:
    """An account whose balance never becomes negative."""

    def __init__(self, owner: str, balance: int = 0) -> None:
        self.owner = owner
        self.balance = balance

    def deposit(self, amount: int) -> None:
        if amount <= 0:
            raise ValueError("the amount must be positive")
        self.balance += amount

    def withdraw(self, amount: int) -> None:
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance -= amount
''',
                ("Bad amounts raise a ValueError.", "The balance can never become negative."),
                ("with plain methods", "with deposit and withdraw"),
            ),
            Variant(
                "dataclass",
                '''
from dataclasses import dataclass


@dataclass
class BankAccount:
    """An account whose balance never becomes negative."""

    owner: str
    balance: int = 0

    def deposit(self, amount: int) -> None:
        self.balance += amount

    def withdraw(self, amount: int) -> None:
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance -= amount
''',
                ("The dataclass writes the constructor for us.",),
                ("as a dataclass", "with a dataclass"),
            ),
            Variant(
                "history",
                '''
class BankAccount:
    """An account that remembers every transaction."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.history: list[int] = []

    @property
    def balance(self) -> int:
        return sum(self.history)

    def deposit(self, amount: int) -> None:
        self.history.append(amount)

    def withdraw(self, amount: int) -> None:
        if amount > self.balance:
            raise ValueError("not enough money")
        self.history.append(-amount)
''',
                ("The balance is the sum of all transactions.",),
                ("with a transaction history", "that remembers all transactions"),
            ),
        ),
        ("account.balance == 70", 'account.owner == "Ada"', 'f("Bob").balance == 0'),
        lambda rng: (quoted(rng.choice(NAMES)), *amounts(rng)),
        "account = f({0})\naccount.deposit({1})\naccount.withdraw({2})\nprint(account.owner, account.balance)",
        'account = f("Ada")\naccount.deposit(100)\naccount.withdraw(30)',
        "class",
    ),
    Program(
        "Counter",
        ("a counter class", "a simple counter"),
        ("count up and down", "count events"),
        (
            Variant(
                "class",
                '''
class Counter:
    """A number that goes up and down in steps."""

    def __init__(self, start: int = 0) -> None:
        self.value = start

    def up(self, step: int = 1) -> None:
        self.value += step

    def down(self, step: int = 1) -> None:
        self.value -= step
''',
                ("The step is one unless another is given.",),
                ("with up and down methods", "with plain methods"),
            ),
            Variant(
                "limited",
                '''
class Counter:
    """A number that never becomes negative."""

    def __init__(self, start: int = 0) -> None:
        self.value = start

    def up(self, step: int = 1) -> None:
        self.value += step

    def down(self, step: int = 1) -> None:
        self.value = max(0, self.value - step)
''',
                ("It stops at zero.",),
                ("that stops at zero", "that never becomes negative"),
            ),
        ),
        ("counter.value == 7", "f().value == 0", "f(3).value == 3"),
        lambda rng: (str(rng.randint(0, 20)), str(rng.randint(2, 9))),
        "counter = f({0})\ncounter.up()\ncounter.up({1})\ncounter.down()\nprint(counter.value)",
        "counter = f(5)\ncounter.up(3)\ncounter.down()",
        "class",
    ),
    Program(
        "Rectangle",
        ("a rectangle class", "a rectangle"),
        ("model a rectangle", "compute area and perimeter of a rectangle"),
        (
            Variant(
                "class",
                '''
class Rectangle:
    """A rectangle with its area and perimeter."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height

    def area(self) -> float:
        return self.width * self.height

    def perimeter(self) -> float:
        return 2 * (self.width + self.height)
''',
                ("Both sizes are computed when they are needed.",),
                ("with plain methods", "with a constructor"),
            ),
            Variant(
                "dataclass",
                '''
from dataclasses import dataclass


@dataclass
class Rectangle:
    """A rectangle with its area and perimeter."""

    width: float
    height: float

    def area(self) -> float:
        return self.width * self.height

    def perimeter(self) -> float:
        return 2 * (self.width + self.height)
''',
                ("The dataclass writes the constructor for us.",),
                ("as a dataclass", "with a dataclass"),
            ),
        ),
        ("shape.area() == 12", "shape.perimeter() == 14", "f(1, 1).area() == 1"),
        lambda rng: (str(rng.randint(2, 30)), str(rng.randint(2, 30))),
        "shape = f({0}, {1})\nprint(shape.area())\nprint(shape.perimeter())",
        "shape = f(3, 4)",
        "class",
    ),
    Program(
        "Circle",
        ("a circle class", "a circle"),
        ("model a circle", "compute area and circumference of a circle"),
        (
            Variant(
                "class",
                '''
from math import pi


class Circle:
    """A circle with its area and circumference."""

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def area(self) -> float:
        return pi * self.radius**2

    def circumference(self) -> float:
        return 2 * pi * self.radius
''',
                ("The constant pi comes from the math module.",),
                ("with plain methods", "with a constructor"),
            ),
            Variant(
                "dataclass",
                '''
from dataclasses import dataclass
from math import pi


@dataclass(frozen=True)
class Circle:
    """A circle with its area and circumference."""

    radius: float

    def area(self) -> float:
        return pi * self.radius**2

    def circumference(self) -> float:
        return 2 * pi * self.radius
''',
                ("A frozen dataclass cannot be changed later.",),
                ("as a dataclass", "with a frozen dataclass"),
            ),
        ),
        ("round(shape.area(), 2) == 12.57", "round(shape.circumference(), 2) == 12.57", "f(0).area() == 0"),
        lambda rng: (str(rng.randint(2, 40)),),
        "shape = f({0})\nprint(round(shape.area(), 2))\nprint(round(shape.circumference(), 2))",
        "shape = f(2)",
        "class",
    ),
    Program(
        "Vector",
        ("a vector class", "a 2D vector"),
        ("add and scale vectors", "model a vector in two dimensions"),
        (
            Variant(
                "class",
                '''
class Vector:
    """A vector in the plane."""

    def __init__(self, x: float, y: float) -> None:
        self.x = x
        self.y = y

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, factor: float) -> "Vector":
        return Vector(self.x * factor, self.y * factor)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and (self.x, self.y) == (other.x, other.y)

    def __repr__(self) -> str:
        return f"({self.x}, {self.y})"
''',
                ("The special methods make + and * work.",),
                ("with operators", "with special methods"),
            ),
            Variant(
                "dataclass",
                '''
from dataclasses import dataclass


@dataclass(frozen=True)
class Vector:
    """A vector in the plane."""

    x: float
    y: float

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, factor: float) -> "Vector":
        return Vector(self.x * factor, self.y * factor)
''',
                ("The dataclass adds comparison and a readable text.",),
                ("as a dataclass", "with a frozen dataclass"),
            ),
        ),
        ("f(1, 2) + f(3, 4) == f(4, 6)", "f(1, 2) * 3 == f(3, 6)", "f(0, 1).y == 1"),
        lambda rng: tuple(str(rng.randint(1, 9)) for _ in range(4)),
        "a = f({0}, {1})\nb = f({2}, {3})\nprint(a + b)\nprint(a * 2)",
        kind="class",
    ),
    Program(
        "Inventory",
        ("an inventory class", "a simple inventory"),
        ("keep track of goods in a store", "manage an inventory"),
        (
            Variant(
                "dict",
                '''
class Inventory:
    """How many of each item are in stock."""

    def __init__(self) -> None:
        self.stock: dict[str, int] = {}

    def add(self, name: str, count: int) -> None:
        self.stock[name] = self.stock.get(name, 0) + count

    def remove(self, name: str, count: int) -> None:
        if self.count(name) < count:
            raise ValueError(f"not enough of {name}")
        self.stock[name] -= count

    def count(self, name: str) -> int:
        return self.stock.get(name, 0)
''',
                ("An unknown item has a count of zero.",),
            ),
            Variant(
                "counter",
                '''
from collections import Counter


class Inventory:
    """How many of each item are in stock."""

    def __init__(self) -> None:
        self.stock: Counter[str] = Counter()

    def add(self, name: str, count: int) -> None:
        self.stock[name] += count

    def remove(self, name: str, count: int) -> None:
        if self.stock[name] < count:
            raise ValueError(f"not enough of {name}")
        self.stock[name] -= count

    def count(self, name: str) -> int:
        return self.stock[name]
''',
                ("A Counter returns zero for items it does not know.",),
            ),
        ),
        ('inventory.count("apple") == 3', 'inventory.count("pear") == 0', 'f().count("plum") == 0'),
        lambda rng: (quoted(rng.choice(WORDS)), str(rng.randint(10, 60)), str(rng.randint(2, 9))),
        "inventory = f()\ninventory.add({0}, {1})\ninventory.remove({0}, {2})\nprint(inventory.count({0}))",
        'inventory = f()\ninventory.add("apple", 5)\ninventory.remove("apple", 2)',
        "class",
    ),
    Program(
        "TodoList",
        ("a todo list class", "a todo list"),
        ("manage a todo list", "keep track of open tasks"),
        (
            Variant(
                "list",
                '''
class TodoList:
    """Tasks that are open or done."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.done: list[str] = []

    def add(self, task: str) -> None:
        self.open.append(task)

    def finish(self, task: str) -> None:
        self.open.remove(task)
        self.done.append(task)

    def pending(self) -> list[str]:
        return list(self.open)
''',
                ("A finished task moves to the second list.",),
                ("with two lists", "with plain lists"),
            ),
            Variant(
                "dict",
                '''
class TodoList:
    """Tasks that are open or done."""

    def __init__(self) -> None:
        self.tasks: dict[str, bool] = {}

    def add(self, task: str) -> None:
        self.tasks[task] = False

    def finish(self, task: str) -> None:
        self.tasks[task] = True

    def pending(self) -> list[str]:
        return [task for task, done in self.tasks.items() if not done]
''',
                ("The dictionary stores whether each task is done.",),
            ),
        ),
        ('todo.pending() == ["write"]', "f().pending() == []"),
        lambda rng: tuple(
            quoted(task)
            for task in rng.sample(("write code", "run tests", "buy milk", "read a book", "call mom", "cook dinner"), 2)
        ),
        "todo = f()\ntodo.add({0})\ntodo.add({1})\ntodo.finish({0})\nprint(todo.pending())",
        'todo = f()\ntodo.add("read")\ntodo.add("write")\ntodo.finish("read")',
        "class",
    ),
)
