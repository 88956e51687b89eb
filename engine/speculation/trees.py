"""Trees of drafts: how they are built, in which rows they stand, and what of them is accepted. The chances of a
block-diffusion drafter don't depend on earlier tokens, so second choices come in the same pass; a tree is built best
first by the product of chances (Ringel and Romano, arXiv 2604.12989). A chain
is a tree with one branch. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple, TypeVar

ROWS = 16
"""Rows of the widest pass over a draft: the anchor and fifteen tokens."""

WIDE_ROWS = (32, 64)
"""Rows of wide passes over a copy: the anchor and the looked up tokens."""


CHOICES = 4
"""How many of the drafter's choices at each position are used. Eight yield at most a hundredth more."""


Held = TypeVar("Held")

Chances = Sequence[Sequence[float]]
"""By position of a block, the probabilities of the drafter's choices there, the likeliest first."""


LOOKED_UP = CHOICES
"""Stands for the choice of a looked up token that is none of the drafter's choices."""


class LookupBranch(NamedTuple):
    """A looked up chain, as a tree takes it in beside the drafter's choices."""

    choices: Sequence[int] = ()
    """By position, which of the drafter's choices the chain goes on with; ``LOOKED_UP`` for none of them."""
    chances: Sequence[float] = ()
    """How likely each of its tokens is once it is reached."""


NOTHING = LookupBranch()


class Node(NamedTuple):
    """A drafted token. Row 0 of a pass is the anchor's; the node of index i in a tree has row i + 1."""

    parent: int
    """The row of the node before it, less than the node's own."""
    depth: int
    """How far behind the anchor it stands; 1 is right behind it."""
    choice: int
    chance: float
    """The chance that it and all nodes between the anchor and it are right."""


def best_first(chances: Chances, rows: int = ROWS, branch: LookupBranch = NOTHING) -> list[Node]:
    """The likeliest nodes that fit into ``rows`` beside the anchor, likeliest first. Where a node is taken, its next
    sibling and its first child become eligible; equals go in that order. A looked up chain is one path more: where the
    drafter's choice is the same token, that is one node. Of equals, a looked up one goes first."""
    tree: list[Node] = []
    waiting: list[tuple[float, int, int, int, int, float]] = []
    turn = count(1)
    looked_up = [0]

    def offer(parent: int, depth: int, choice: int, before: float) -> None:
        if parent in looked_up and depth <= len(branch.choices):
            choice += choice == branch.choices[depth - 1]
        if depth <= len(chances) and choice < len(chances[depth - 1]):
            chance = before * chances[depth - 1][choice]
            heappush(waiting, (-chance, next(turn), depth, parent, choice, before))

    def look_up(depth: int, before: float) -> None:
        if depth <= len(branch.choices):
            chance = before * branch.chances[depth - 1]
            heappush(waiting, (-chance, 0, depth, looked_up[-1], branch.choices[depth - 1], before))

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
    """The tree of ``length`` first choices, one behind the other: it has one branch."""
    return [Node(row, row + 1, 0, 1.0) for row in range(length)]


def choices_of(ids: Sequence[int], drafted: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Which of the drafter's choices each token of a looked up chain is, as far as both reach. (Alone such a chain
    fills a pass; into a tree it enters as far as the drafter has choices beside it.)"""
    return tuple(
        position.index(token) if token in position else LOOKED_UP for token, position in zip(ids, drafted, strict=False)
    )


def extended(choices: Sequence[Sequence[Held]], branch: Sequence[Held]) -> Sequence[Sequence[Held]]:
    """For each position, an entry for each of the drafter's choices and then one for the looked up token, where there
    is one: ``extended([[a, b], [c, d]], [x])`` is ``((a, b, x), (c, d))``. Entries may be ids or chances."""
    if not branch:
        return choices
    more = [(each,) for each in branch] + [()] * (len(choices) - len(branch))
    return tuple((*position, *further) for position, further in zip(choices, more, strict=True))


def is_chain(tree: Sequence[Node]) -> bool:
    return all(node.choice == 0 and node.parent == row for row, node in enumerate(tree))


def accepted_path(tree: Sequence[Node], samples: Sequence[int]) -> list[int]:
    """The rows of the path that begins at the anchor and takes at each depth the choice in ``samples``, as far as the
    tree holds it."""
    rows = {(node.parent, node.choice): row for row, node in enumerate(tree, 1)}
    path: list[int] = []
    for choice in samples:
        row = rows.get((path[-1] if path else 0, choice))
        if row is None:
            break
        path.append(row)
    return path


def in_rows(nodes: Sequence[Node]) -> list[Node]:
    """Puts nodes, given likeliest first, into row order: the trunk stands in the rows of a chain, all others behind it.
    The trunk goes on from each node with the likeliest one behind it: the first choice, where nothing was looked up."""
    chain = [0]
    for row, node in enumerate(nodes, 1):
        if node.parent == chain[-1]:
            chain.append(row)
    trunk = set(chain)
    order = chain[1:] + [row for row in range(1, len(nodes) + 1) if row not in trunk]
    new_row = {0: 0} | {old: new for new, old in enumerate(order, 1)}
    return [nodes[old - 1]._replace(parent=new_row[nodes[old - 1].parent]) for old in order]


def branches(tree: Sequence[Node]) -> list[list[int]]:
    """For each leaf of the tree, the rows from the anchor's to it; a chain has one branch, of all its rows."""
    parents = {node.parent for node in tree}
    return [path_to(tree, row) for row in range(len(tree) + 1) if row not in parents]


def placed(parents: Sequence[int], choices: Sequence[int], chances: Sequence[Sequence[float]]) -> list[Node]:
    """The tree whose nodes, row by row, have these parents and choices, with chances from what the drafter gave
    them."""
    tree = [Node(0, 0, 0, 1.0)]
    for parent, choice in zip(parents, choices, strict=True):
        before = tree[parent]
        tree.append(Node(parent, before.depth + 1, choice, before.chance * chances[before.depth][choice]))
    return tree[1:]


def path_to(tree: Sequence[Node], row: int) -> list[int]:
    """The rows of a tree from the anchor's to ``row``, one for each depth."""
    path = [row]
    while row:
        row = tree[row - 1].parent
        path.append(row)
    return path[::-1]
