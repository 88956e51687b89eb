"""Classes that hold items."""

from __future__ import annotations

import random

from ..program import Program, Variant
from ..values import WORDS, int_list, quoted


def three_numbers(rng: random.Random) -> tuple[str, ...]:
    return tuple(str(value) for value in int_list(rng)[:3])


def three_words(rng: random.Random) -> tuple[str, ...]:
    return tuple(quoted(word) for word in rng.sample(WORDS, 3))


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
