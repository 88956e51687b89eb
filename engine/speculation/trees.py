"""Trees of drafts: how they are built, in which rows they stand, what is accepted. A block-diffusion drafter's chances
don't depend on earlier tokens, so second choices come in the same pass; a tree is built best first by the product of
chances (Ringel and Romano, arXiv 2604.12989). A chain is a tree with one branch. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple, TypeVar

ROWS = 16
"""Of the widest pass over what a drafter drafted: the anchor and fifteen tokens."""

WIDE_ROWS = (32, 64)
"""Of passes over a copy: the anchor and what was looked up."""


CHOICES = 4
"""Of the drafter's at each position. Eight yield at most a hundredth more."""


Held = TypeVar("Held")

Chances = Sequence[Sequence[float]]
"""By position of a block, what the drafter gave its choices there, the likeliest first."""


LOOKED_UP = CHOICES
"""The choice of a token that a lookup guessed, and none of the drafter's choices is."""


class Beside(NamedTuple):
    """A looked up chain, as a tree takes it in."""

    choices: Sequence[int] = ()
    """By position: which of the drafter's choices it goes on with, ``LOOKED_UP`` for none."""
    chances: Sequence[float] = ()
    """How likely each is once it is reached."""


NOTHING = Beside()


class Node(NamedTuple):
    """A drafted token. Row 0 of a pass is the anchor's; the node of index i in a tree has row i + 1."""

    parent: int
    """Its row, less than the node's own."""
    depth: int
    """1 right behind the anchor."""
    choice: int
    chance: float
    """That it and all between the anchor and it are right."""


def best_first(chances: Chances, rows: int = ROWS, beside: Beside = NOTHING) -> list[Node]:
    """The likeliest nodes that fit into ``rows`` beside the anchor, likeliest first; a node makes way for its next
    sibling, then its first child, and equals go in that order. A looked up chain is one path more: where the drafter
    goes on from it as it does, that is one node. Of equals, what was looked up goes first."""
    tree: list[Node] = []
    waiting: list[tuple[float, int, int, int, int, float]] = []
    turn = count(1)
    looked_up = [0]

    def offer(parent: int, depth: int, choice: int, before: float) -> None:
        if parent in looked_up and depth <= len(beside.choices):
            choice += choice == beside.choices[depth - 1]
        if depth <= len(chances) and choice < len(chances[depth - 1]):
            chance = before * chances[depth - 1][choice]
            heappush(waiting, (-chance, next(turn), depth, parent, choice, before))

    def look_up(depth: int, before: float) -> None:
        if depth <= len(beside.choices):
            chance = before * beside.chances[depth - 1]
            heappush(waiting, (-chance, 0, depth, looked_up[-1], beside.choices[depth - 1], before))

    look_up(1, 1.0)
    offer(0, 1, 0, 1.0)
    while waiting and len(tree) < rows - 1:
        negative, number, depth, parent, choice, before = heappop(waiting)
        tree.append(Node(parent, depth, choice, -negative))
        if number:
            offer(parent, depth, choice + 1, before)
        else:
            looked_up.append(len(tree))
            look_up(depth + 1, -negative)
        offer(len(tree), depth + 1, 0, -negative)
    return tree


def chain(length: int) -> list[Node]:
    """First choices alone, one behind the other: a tree with one branch."""
    return [Node(row, row + 1, 0, 1.0) for row in range(length)]


def choices_of(ids: Sequence[int], drafted: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Which of the drafter's choices each token of a looked up chain is, as far as both go. (Alone such a chain fills a
    pass; into a tree it enters as far as there are choices beside it.)"""
    return tuple(
        position.index(token) if token in position else LOOKED_UP for token, position in zip(ids, drafted, strict=False)
    )


def extended(choices: Sequence[Sequence[Held]], beside: Sequence[Held]) -> tuple[tuple[Held, ...], ...]:
    """By position, what is known of the drafter's choices, and then of a looked up token, where there is one."""
    more = [(each,) for each in beside] + [()] * (len(choices) - len(beside))
    return tuple((*position, *further) for position, further in zip(choices, more, strict=True))


def is_chain(tree: Sequence[Node]) -> bool:
    return all(node.choice == 0 and node.parent == row for row, node in enumerate(tree))


def accepted_path(tree: Sequence[Node], said: Sequence[int]) -> list[int]:
    """Rows of the nodes that the text says, one behind the other."""
    rows = {(node.parent, node.choice): row for row, node in enumerate(tree, 1)}
    path: list[int] = []
    for choice in said:
        row = rows.get((path[-1] if path else 0, choice))
        if row is None:
            break
        path.append(row)
    return path


def in_rows(nodes: Sequence[Node]) -> list[Node]:
    """The same nodes, likeliest first, in row order: the trunk stands where a chain does, all others behind it. It goes
    from the anchor to the likeliest node behind each, the first choice where nothing was looked up."""
    chain = [0]
    for row, node in enumerate(nodes, 1):
        if node.parent == chain[-1]:
            chain.append(row)
    trunk = set(chain)
    order = chain[1:] + [row for row in range(1, len(nodes) + 1) if row not in trunk]
    new_row = {0: 0} | {old: new for new, old in enumerate(order, 1)}
    return [nodes[old - 1]._replace(parent=new_row[nodes[old - 1].parent]) for old in order]


def branches(tree: Sequence[Node]) -> list[list[int]]:
    """Rows from the anchor's to each that none follows; of a chain, all of its rows."""
    parents = {node.parent for node in tree}
    return [path_to(tree, row) for row in range(len(tree) + 1) if row not in parents]


def placed(parents: Sequence[int], choices: Sequence[int], chances: Chances) -> list[Node]:
    """The tree whose rows behind the anchor's have these parents and choices, by what the drafter gave them."""
    tree = [Node(0, 0, 0, 1.0)]
    for parent, choice in zip(parents, choices, strict=True):
        before = tree[parent]
        tree.append(Node(parent, before.depth + 1, choice, before.chance * chances[before.depth][choice]))
    return tree[1:]


def path_to(tree: Sequence[Node], row: int) -> list[int]:
    """Rows from the anchor's to this one, one for each depth."""
    path = [row]
    while row:
        row = tree[row - 1].parent
        path.append(row)
    return path[::-1]
