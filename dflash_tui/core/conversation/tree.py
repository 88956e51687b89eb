"""A conversation as a tree: every question that was ever asked stays, and one path through them is what goes on.

A node is one question with one answer; its parent is the one that it followed. Nodes with the same parent are
*versions* of that place: with other words they are versions of the question, with the same words versions of its answer
(asked again, or decoded with other settings). Numbers count up as questions are asked, so a node's is above its
parent's, and there is no cycle to walk into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

MAX_RAILS = 32
"""Columns of a drawing; further in, only the nearest are kept."""
ROOT = 0
"""The beginning, before any question: the parent of the first."""

NodePart = Literal["question", "answer"]
"""What something is a version of: a node's question, or its answer."""


class Branching(Protocol):
    """What a node has to know of itself."""

    number: int
    """The node's number in the tree, above 0."""
    parent: int
    """The number of the node that this one followed, or ``ROOT``."""
    question: str
    name: str
    """What the user calls the branch that begins here; empty for none."""


Node = TypeVar("Node", bound=Branching)


@dataclass(frozen=True, slots=True)
class Outlined(Generic[Node]):
    """A node in the drawing of the whole tree. What has no versions stays in the column of its parent."""

    node: Node
    depth: int
    """How many forks stand between it and the beginning."""
    rails: tuple[bool, ...]
    """For each column to its left, whether a further version comes below."""
    forked: bool
    """Whether there are other versions of it."""
    last: bool
    """Whether none of its versions comes below it in the drawing."""


class Tree(Generic[Node]):
    """Grows by :meth:`add`; nothing but a question that was never asked is taken out again."""

    def __init__(self) -> None:
        self._nodes: dict[int, Node] = {}
        self._children: dict[int, list[Node]] = {ROOT: []}
        self._chosen: dict[int, int] = {}
        """The number of the child on the way to where the user was last, by its parent's number."""
        self._here = ROOT
        self._path: list[Node] | None = None

    # Growing

    def add(self, node: Node) -> None:
        """A node that its own ``parent`` says the place of; the path ends at it. ``ValueError`` for a number that is
        taken or not above its parent's, and for a parent that isn't there."""
        if node.number in self._nodes or node.number <= node.parent or node.parent not in self._children:
            raise ValueError(f"question {node.number} can't follow {node.parent}")
        self._nodes[node.number] = node
        self._children[node.number] = []
        self._children[node.parent].append(node)
        self.go(node.number)

    def withdraw(self, number: int) -> None:
        """Take out a node that nothing follows; a path that ended at it ends at its parent. ``KeyError``."""
        node = self._nodes[number]
        if self._children[number]:
            raise ValueError(f"something follows question {number}")
        if self._here == number:
            self.go(node.parent)
        del self._nodes[number], self._children[number]
        self._children[node.parent].remove(node)
        if self._chosen.get(node.parent) == number:
            del self._chosen[node.parent]

    # Where the user is

    @property
    def here(self) -> int:
        """The number of the node at which the path ends: the next question follows it."""
        return self._here

    @property
    def path(self) -> list[Node]:
        """The nodes from the first question to the one at which the path ends."""
        if self._path is None:
            self._path = self.path_to(self._here)
        return self._path

    def on_path(self, number: int) -> int | None:
        """Where on the path a node stands, counted from 0; None for one beside it."""
        return next((depth for depth, node in enumerate(self.path) if node.number == number), None)

    def path_to(self, number: int) -> list[Node]:
        """The nodes from the first question to node ``number``; none for ``ROOT``. Raises ``KeyError`` for no such
        node."""
        nodes = []
        while number != ROOT:
            node = self._nodes[number]
            nodes.append(node)
            number = node.parent
        return nodes[::-1]

    def go(self, number: int) -> None:
        """End the path at a node, or at ``ROOT``; what follows stays in the tree. ``KeyError`` if there is none."""
        if number != ROOT and number not in self._nodes:
            raise KeyError(number)
        self._here, self._path = number, None
        for node in reversed(self.path):
            if self._chosen.get(node.parent) == node.number:
                break
            self._chosen[node.parent] = node.number

    def end_below(self, number: int) -> int:
        """The number of the node where a path through this one ended last: the user's choices, or else the newest."""
        while children := self._children[number]:
            number = self._chosen.get(number, children[-1].number)
        return number

    # Looking

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        """All nodes, as they were added."""
        return iter(self._nodes.values())

    def __contains__(self, number: object) -> bool:
        return number in self._nodes

    def __getitem__(self, number: int) -> Node:
        """The node with this number. Raises ``KeyError`` where there is none."""
        return self._nodes[number]

    def children(self, number: int) -> list[Node]:
        """What follows a node, or ``ROOT``, oldest first."""
        return list(self._children[number])

    def versions(self, number: int, which: NodePart) -> list[Node]:
        """The versions of a node's question or answer, itself among them, oldest first. Of each version of a question
        that is the node at which the user was last, or else the newest."""
        node = self._nodes[number]
        siblings = self._children[node.parent]
        if which == "answer":
            return [each for each in siblings if each.question == node.question]
        by_text: dict[str, Node] = {}
        chosen = self._chosen.get(node.parent)
        for each in siblings:
            if each.question not in by_text or by_text[each.question].number != chosen:
                by_text[each.question] = each
        by_text[node.question] = node
        return list(by_text.values())

    def version_of(self, number: int, which: NodePart) -> tuple[int, int]:
        """Which version a node is of how many, counted from 1."""
        versions = self.versions(number, which)
        return 1 + next(index for index, each in enumerate(versions) if each.number == number), len(versions)

    def neighbour(self, number: int, which: NodePart, by: int) -> Node | None:
        """The version ``by`` places on, or back where it is negative; None behind the ends."""
        index, count = self.version_of(number, which)
        return self.versions(number, which)[index - 1 + by] if 1 <= index + by <= count else None

    def find(self, words: str) -> Node | None:
        """The node with this number (``3`` or ``#3``) or name, the newest first; a name may be cut short."""
        digits = words.removeprefix("#")
        if digits.isdecimal() and int(digits) in self._nodes:
            return self._nodes[int(digits)]
        wanted = words.casefold()
        named = [node for node in reversed(self._nodes.values()) if node.name and wanted]
        exact = (node for node in named if node.name.casefold() == wanted)
        return next(exact, next((node for node in named if node.name.casefold().startswith(wanted)), None))

    def outline(self) -> list[Outlined[Node]]:
        """Every node, in the order of a drawing: a node, what follows it, then its next version."""
        rows: list[Outlined[Node]] = []
        waiting = self._rows_below(ROOT, 0, ())
        while waiting:
            row = waiting.pop()
            rows.append(row)
            rails = (*row.rails, not row.last)[-MAX_RAILS:] if row.forked else row.rails
            waiting += self._rows_below(row.node.number, row.depth, rails)
        return rows

    def _rows_below(self, number: int, depth: int, rails: tuple[bool, ...]) -> list[Outlined[Node]]:
        """The children of a node, the last one first."""
        children = self._children[number]
        forked = len(children) > 1
        depth += forked
        return [Outlined(node, depth, rails, forked, node is children[-1]) for node in reversed(children)]
