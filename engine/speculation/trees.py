"""Trees of drafts: how they are built, in which rows they stand, and what of them is accepted. The chances of a
block-diffusion drafter don't depend on earlier tokens, so second choices come in the same pass; a tree is built best
first by the product of chances (Ringel and Romano, arXiv 2604.12989). Where a drafter scores a token by the one before
it, each token has choices of its own behind it (``Lattice``). A chain is a tree with one branch. Standard library
only."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

ROWS = 16
"""Rows of the widest pass over a draft: the anchor and fifteen tokens."""

WIDE_ROWS = (32, 64)
"""Rows of wide passes over a copy: the anchor and the looked up tokens."""


CHOICES = 4
"""How many of the drafter's choices at each position are used. Eight yield at most a hundredth more."""


Chances = Sequence[Sequence[float]]
"""By position of a block, the probabilities of the drafter's choices there, the likeliest first: as they are behind any
token, or a ``Lattice``."""


class Lattice(tuple[Sequence[float], ...]):
    """Chances that depend on the token before. Each position has candidates, the same behind every token, and behind
    each candidate of the position before an order of its own, of which the best are choices. As a tuple it holds the
    chances along the chain of first choices, by position."""

    behind: Sequence[Sequence[Sequence[float]]]
    """By position and by the candidate before: the chances of the choices, the likeliest first. Behind the anchor,
    those behind candidate 0 count."""
    order: Sequence[Sequence[Sequence[int]]]
    """In the same order, which candidate of its position each choice is; empty where that is no longer asked."""

    @classmethod
    def of(cls, behind: Sequence[Sequence[Sequence[float]]], order: Sequence[Sequence[Sequence[int]]]) -> Lattice:
        chain, before = [], 0
        for chances, candidates in zip(behind, order, strict=True):
            chain.append(chances[before])
            before = candidates[before][0]
        return cls.with_chain(chain, behind, order)

    @classmethod
    def with_chain(
        cls,
        chain: Chances,
        behind: Sequence[Sequence[Sequence[float]]],
        order: Sequence[Sequence[Sequence[int]]] = (),
    ) -> Lattice:
        """Where the chain of first choices is known."""
        lattice = cls(chain)
        lattice.behind, lattice.order = behind, order
        return lattice


LOOKED_UP = CHOICES
"""Stands for the choice of a looked up token that is none of the drafter's choices."""


class LookupBranch(NamedTuple):
    """A looked up chain, as a tree takes it in beside the drafter's choices."""

    choices: Sequence[int] = ()
    """By position, which of the drafter's choices the chain goes on with; ``LOOKED_UP`` for none of them."""
    chances: Sequence[float] = ()
    """How likely each of its tokens is once it is reached."""
    candidates: Sequence[int] = ()
    """By position, which candidate its token is in a ``Lattice``: 0 where it is none, for want of a better guess at
    what the drafter expects behind it."""


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
    candidate: int = 0
    """Which of its position's candidates it is: in a ``Lattice``, the choices behind this one stand behind it."""


def after(chances: Chances, position: int, before: int) -> Sequence[float]:
    """The chances of the choices at a position behind this candidate of the one before; empty behind the last."""
    if position >= len(chances):
        return ()
    return chances.behind[position][before] if isinstance(chances, Lattice) else chances[position]


def candidate_of(chances: Chances, position: int, before: int, choice: int) -> int:
    """Which candidate of its position a choice behind the candidate ``before`` is."""
    return chances.order[position][before][choice] if isinstance(chances, Lattice) else choice


def behind(chances: Chances, tree: Sequence[Node]) -> list[Sequence[float]]:
    """By row, the anchor's first, the chances of the choices behind it."""
    return [after(chances, 0, 0), *(after(chances, node.depth, node.candidate) for node in tree)]


def along(chances: Chances, candidates: Sequence[int]) -> Chances:
    """By position, the chances of the choices behind a chain of these candidates."""
    if not isinstance(chances, Lattice):
        return chances
    befores = (0, *candidates)[: len(chances)]
    return [after(chances, position, before) for position, before in enumerate(befores)]


def best_first(chances: Chances, rows: int = ROWS, branch: LookupBranch = NOTHING) -> list[Node]:
    """The likeliest nodes that fit into ``rows`` beside the anchor, likeliest first. Where a node is taken, its next
    sibling and its first child become eligible; equals go in that order. A looked up chain is one path more: where the
    drafter's choice is the same token, that is one node. Of equals, a looked up one goes first."""
    tree: list[Node] = []
    waiting: list[tuple[float, int, int, int, int, float]] = []
    turn = count(1)
    looked_up, candidates = [0], [0]

    def offer(parent: int, depth: int, choice: int, before: float) -> None:
        if parent in looked_up and depth <= len(branch.choices):
            choice += choice == branch.choices[depth - 1]
        own = after(chances, depth - 1, candidates[parent])
        if choice < len(own):
            heappush(waiting, (-before * own[choice], next(turn), depth, parent, choice, before))

    def look_up(depth: int, before: float) -> None:
        if depth <= len(branch.choices):
            chance = before * branch.chances[depth - 1]
            heappush(waiting, (-chance, 0, depth, looked_up[-1], branch.choices[depth - 1], before))

    look_up(1, 1.0)
    offer(0, 1, 0, 1.0)
    while waiting and len(tree) < rows - 1:
        negative, number, depth, parent, choice, before = heappop(waiting)
        if choice == LOOKED_UP:
            candidates.append(branch.candidates[depth - 1] if branch.candidates else 0)
        else:
            candidates.append(candidate_of(chances, depth - 1, candidates[parent], choice))
        tree.append(Node(parent, depth, choice, -negative, candidates[-1]))
        if number:
            offer(parent, depth, choice + 1, before)
        else:
            looked_up.append(len(tree))
            look_up(depth + 1, -negative)
        offer(len(tree), depth + 1, 0, -negative)
    return tree


def chain(length: int, chances: Chances = ()) -> list[Node]:
    """The tree of ``length`` first choices of ``chances``, one behind the other: it has one branch."""
    nodes, candidate = list[Node](), 0
    for row in range(length):
        candidate = candidate_of(chances, row, candidate, 0)
        nodes.append(Node(row, row + 1, 0, 1.0, candidate))
    return nodes


def choices_of(
    ids: Sequence[int], drafted: Sequence[Sequence[int]], chances: Chances
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which of the drafter's choices each token of a looked up chain is, and which candidate, as far as both reach.
    ``drafted``: each position's candidates. (Alone such a chain fills a pass; into a tree it enters as far as the
    drafter has choices beside it.)"""
    choices, numbers = [], [0]
    for position, (token, candidates) in enumerate(zip(ids, drafted, strict=False)):
        number = candidates.index(token) if token in candidates else None
        order = chances.order[position][numbers[-1]] if isinstance(chances, Lattice) else range(len(candidates))
        choices.append(LOOKED_UP if number is None or number not in order else order.index(number))
        numbers.append(number or 0)
    return tuple(choices), tuple(numbers[1:])


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


def placed(
    parents: Sequence[int], choices: Sequence[int], chances: Chances, by_match: Sequence[float] = ()
) -> list[Node]:
    """The tree whose nodes, row by row, have these parents and choices, with chances from what the drafter gave them,
    or the match, by position. ``chances`` are those of choices by position, or behind each row."""
    tree = [Node(0, 0, 0, 1.0)]
    for row, (parent, choice) in enumerate(zip(parents, choices, strict=True), 1):
        before = tree[parent]
        given = by_match[before.depth] if choice == LOOKED_UP else after(chances, before.depth, parent)[choice]
        tree.append(Node(parent, before.depth + 1, choice, before.chance * given, row))
    return tree[1:]


def path_to(tree: Sequence[Node], row: int) -> list[int]:
    """The rows of a tree from the anchor's to ``row``, one for each depth."""
    path = [row]
    while row:
        row = tree[row - 1].parent
        path.append(row)
    return path[::-1]
