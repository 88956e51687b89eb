"""Small classes: collections, accounts, counters, shapes."""

from __future__ import annotations

import random

from ..program import Program, Variant
from ..values import NAMES, WORDS, int_list, quoted


def three_numbers(rng: random.Random) -> tuple[str, ...]:
    return tuple(str(value) for value in int_list(rng)[:3])


def three_words(rng: random.Random) -> tuple[str, ...]:
    return tuple(quoted(word) for word in rng.sample(WORDS, 3))


def amounts(rng: random.Random) -> tuple[str, ...]:
    return str(rng.randrange(50, 500, 10)), str(rng.randrange(10, 50, 5))


PROGRAMS = (
    Program(
        "Stack",
        ("a stack class", "a stack"),
        ("store items and take the last one first", "implement a stack"),
        (
            Variant(
                "list",
                '''
class Stack:
    """A collection that gives back the last item first."""

    def __init__(self) -> None:
        self.items: list = []

    def push(self, item: object) -> None:
        self.items.append(item)

    def pop(self) -> object:
        if not self.items:
            raise IndexError("pop from an empty stack")
        return self.items.pop()

    def peek(self) -> object:
        return self.items[-1]

    def __len__(self) -> int:
        return len(self.items)
''',
                ("The end of the list is the top of the stack.", "The last item in is the first one out."),
            ),
            Variant(
                "linked",
                '''
class Node:
    def __init__(self, value: object, below: "Node | None") -> None:
        self.value = value
        self.below = below


class Stack:
    """A stack of linked nodes."""

    def __init__(self) -> None:
        self.top: Node | None = None
        self.size = 0

    def push(self, item: object) -> None:
        self.top = Node(item, self.top)
        self.size += 1

    def pop(self) -> object:
        if self.top is None:
            raise IndexError("pop from an empty stack")
        item = self.top.value
        self.top = self.top.below
        self.size -= 1
        return item

    def peek(self) -> object:
        return self.top.value

    def __len__(self) -> int:
        return self.size
''',
                ("Each node knows the one below it.",),
            ),
            Variant(
                "deque",
                '''
from collections import deque


class Stack:
    """A collection that gives back the last item first."""

    def __init__(self) -> None:
        self.items: deque = deque()

    def push(self, item: object) -> None:
        self.items.append(item)

    def pop(self) -> object:
        return self.items.pop()

    def peek(self) -> object:
        return self.items[-1]

    def __len__(self) -> int:
        return len(self.items)
''',
                ("A deque is fast at both ends.",),
            ),
        ),
        ("stack.peek() == 2", "len(stack) == 2", "len(f()) == 0"),
        three_numbers,
        "stack = f()\nstack.push({0})\nstack.push({1})\nstack.push({2})\nprint(stack.pop())\nprint(len(stack))",
        "stack = f()\nstack.push(1)\nstack.push(2)\nstack.push(3)\nassert stack.pop() == 3",
        "class",
    ),
    Program(
        "Queue",
        ("a queue class", "a queue"),
        ("store items and take the first one first", "implement a queue"),
        (
            Variant(
                "deque",
                '''
from collections import deque


class Queue:
    """A collection that gives back the first item first."""

    def __init__(self) -> None:
        self.items: deque = deque()

    def enqueue(self, item: object) -> None:
        self.items.append(item)

    def dequeue(self) -> object:
        if not self.items:
            raise IndexError("dequeue from an empty queue")
        return self.items.popleft()

    def __len__(self) -> int:
        return len(self.items)
''',
                ("A deque is fast at both ends.", "The first item in is the first one out."),
            ),
            Variant(
                "list",
                '''
class Queue:
    """A collection that gives back the first item first."""

    def __init__(self) -> None:
        self.items: list = []

    def enqueue(self, item: object) -> None:
        self.items.append(item)

    def dequeue(self) -> object:
        if not self.items:
            raise IndexError("dequeue from an empty queue")
        return self.items.pop(0)

    def __len__(self) -> int:
        return len(self.items)
''',
                ("Taking from the front of a list is slow when it is long.",),
            ),
            Variant(
                "two_stacks",
                '''
class Queue:
    """A queue made of two stacks."""

    def __init__(self) -> None:
        self.inbox: list = []
        self.outbox: list = []

    def enqueue(self, item: object) -> None:
        self.inbox.append(item)

    def dequeue(self) -> object:
        if not self.outbox:
            while self.inbox:
                self.outbox.append(self.inbox.pop())
        return self.outbox.pop()

    def __len__(self) -> int:
        return len(self.inbox) + len(self.outbox)
''',
                ("Moving items to the second stack reverses their order.",),
                ("with two stacks", "using two stacks", "made of two lists"),
            ),
        ),
        ("queue.dequeue() == 2", "len(f()) == 0", "len(queue) <= 2"),
        three_words,
        "queue = f()\nfor item in [{args}]:\n    queue.enqueue(item)\nprint(queue.dequeue())\nprint(len(queue))",
        "queue = f()\nqueue.enqueue(1)\nqueue.enqueue(2)\nqueue.enqueue(3)\nassert queue.dequeue() == 1",
        "class",
    ),
    Program(
        "LinkedList",
        ("a linked list", "a singly linked list", "a linked list class"),
        ("store values in a linked list", "implement a linked list"),
        (
            Variant(
                "append",
                '''
class Node:
    def __init__(self, value: object) -> None:
        self.value = value
        self.next: Node | None = None


class LinkedList:
    """A singly linked list."""

    def __init__(self) -> None:
        self.head: Node | None = None

    def append(self, value: object) -> None:
        node = Node(value)
        if self.head is None:
            self.head = node
            return
        last = self.head
        while last.next:
            last = last.next
        last.next = node

    def to_list(self) -> list:
        values = []
        node = self.head
        while node:
            values.append(node.value)
            node = node.next
        return values
''',
                ("Each node knows the next one.", "Appending walks to the last node first."),
                ("with an append method", "with separate nodes"),
            ),
            Variant(
                "tail",
                '''
from collections.abc import Iterator


class Node:
    def __init__(self, value: object) -> None:
        self.value = value
        self.next: Node | None = None


class LinkedList:
    """A singly linked list that remembers its last node."""

    def __init__(self) -> None:
        self.head: Node | None = None
        self.tail: Node | None = None

    def append(self, value: object) -> None:
        node = Node(value)
        if self.tail is None:
            self.head = node
        else:
            self.tail.next = node
        self.tail = node

    def __iter__(self) -> Iterator:
        node = self.head
        while node:
            yield node.value
            node = node.next

    def to_list(self) -> list:
        return list(self)
''',
                ("Because it knows the tail, appending takes constant time.",),
                ("with a tail pointer", "that can be iterated", "with fast appending"),
            ),
        ),
        ("values.to_list() == [1, 2]", "f().to_list() == []"),
        three_numbers,
        "values = f()\nvalues.append({0})\nvalues.append({1})\nvalues.append({2})\nprint(values.to_list())",
        "values = f()\nvalues.append(1)\nvalues.append(2)",
        "class",
    ),
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
    Program(
        "BinaryTree",
        ("a binary search tree", "a binary tree class"),
        ("store numbers in a binary search tree", "implement a binary search tree"),
        (
            Variant(
                "recursive",
                '''
class BinaryTree:
    """A binary search tree of numbers."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.left: BinaryTree | None = None
        self.right: BinaryTree | None = None

    def insert(self, value: int) -> None:
        side = "left" if value < self.value else "right"
        child = getattr(self, side)
        if child is None:
            setattr(self, side, BinaryTree(value))
        else:
            child.insert(value)

    def values(self) -> list[int]:
        left = self.left.values() if self.left else []
        right = self.right.values() if self.right else []
        return left + [self.value] + right
''',
                ("Smaller values go left, all others right.", "Walking the tree gives the values in order."),
            ),
            Variant(
                "loop",
                '''
class BinaryTree:
    """A binary search tree of numbers."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.left: BinaryTree | None = None
        self.right: BinaryTree | None = None

    def insert(self, value: int) -> None:
        node = self
        while True:
            if value < node.value:
                if node.left is None:
                    node.left = BinaryTree(value)
                    return
                node = node.left
            else:
                if node.right is None:
                    node.right = BinaryTree(value)
                    return
                node = node.right

    def values(self) -> list[int]:
        left = self.left.values() if self.left else []
        right = self.right.values() if self.right else []
        return left + [self.value] + right
''',
                ("The loop goes down until it finds a free place.",),
                ("with a loop for inserting", "with an iterative insert"),
            ),
        ),
        ("tree.values() == [1, 3, 5, 8]", "f(4).values() == [4]", "tree.value == 5"),
        lambda rng: (str((values := int_list(rng))[0]), str(values[1:])),
        "tree = f({0})\nfor value in {1}:\n    tree.insert(value)\nprint(tree.values())",
        "tree = f(5)\nfor value in [3, 8, 1]:\n    tree.insert(value)",
        "class",
    ),
)
