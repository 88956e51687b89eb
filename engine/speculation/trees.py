"""Trees of drafts: how one is built, in which rows it stands, what of it is accepted. Standard library only.

A block-diffusion drafter gives every position of a block chances of its own, whatever the tokens before it turn out to
be. So second choices are known in the same pass, and a tree of first and further choices can be verified in the rows
that a chain would fill. Built best first, by the product of chances (Ringel and Romano, arXiv 2604.12989).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate, count
from typing import NamedTuple

from .verify_width import MEMORY, NUM_BINS, TRY, Auto, Calibration, Choice

ROWS = 16
"""Of the widest pass: the anchor and fifteen drafted tokens."""


CHOICES = 4
"""Of the drafter's at each position. Eight yield at most a hundredth more."""


Chances = Sequence[Sequence[float]]
"""By position of a block, what the drafter gave its choices there, the likeliest first."""


class Node(NamedTuple):
    """A drafted token. Row 0 of a pass is the anchor's; the node of index i in a tree has row i + 1."""

    parent: int
    """Its row, less than the node's own."""
    depth: int
    """1 right behind the anchor."""
    choice: int
    chance: float
    """That it and all between the anchor and it are right."""


def best_first(chances: Chances, rows: int = ROWS) -> list[Node]:
    """The likeliest nodes that fit into ``rows`` beside the anchor, the likeliest first.

    A node taken makes way for the next choice beside it, then for the first choice behind it. Of equals the one goes
    first for which the way was made first.
    """
    tree: list[Node] = []
    waiting: list[tuple[float, int, int, int, int, float]] = []
    turn = count()

    def offer(parent: int, depth: int, choice: int, before: float) -> None:
        if depth <= len(chances) and choice < len(chances[depth - 1]):
            chance = before * chances[depth - 1][choice]
            heappush(waiting, (-chance, next(turn), depth, parent, choice, before))

    offer(0, 1, 0, 1.0)
    while waiting and len(tree) < rows - 1:
        negative, _, depth, parent, choice, before = heappop(waiting)
        tree.append(Node(parent, depth, choice, -negative))
        offer(parent, depth, choice + 1, before)
        offer(len(tree), depth + 1, 0, -negative)
    return tree


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
    """The same nodes in the order of their rows: first choices behind first choices before all others.

    These rows stand where a chain's do, so whoever runs them needs to know nothing of trees. ``nodes``: the likeliest
    first, as ``best_first`` lists them.
    """
    chain, trunk = [0], {0}
    for row, node in enumerate(nodes, 1):
        if node.choice == 0 and node.parent in trunk:
            chain.append(row)
            trunk.add(row)
    order = chain[1:] + [row for row in range(1, len(nodes) + 1) if row not in trunk]
    new_row = {0: 0} | {old: new for new, old in enumerate(order, 1)}
    return [nodes[old - 1]._replace(parent=new_row[nodes[old - 1].parent]) for old in order]


def path_to(tree: Sequence[Node], row: int) -> list[int]:
    """Rows from the anchor's to this one, one for each depth."""
    path = [row]
    while row:
        row = tree[row - 1].parent
        path.append(row)
    return path[::-1]


OTHERS_WEIGHT = 4.0
"""So much confidence in choices behind the first has come true before any is seen: about thirty of them."""


class Together(Calibration):
    """For choices behind the first: these are seldom right, so the few in a bin say little. All bins learn alike."""

    def __init__(self) -> None:
        super().__init__()
        self.accepted = [OTHERS_WEIGHT] * NUM_BINS
        self.confidence = [OTHERS_WEIGHT] * NUM_BINS

    def observe(self, confidence: float, accepted: bool) -> None:
        for index in range(NUM_BINS):
            self.accepted[index] = MEMORY * self.accepted[index] + accepted
            self.confidence[index] = MEMORY * self.confidence[index] + confidence


@dataclass(slots=True)
class AutoTrees(Auto):
    """``Auto``, choosing how many of a tree's nodes to verify.

    Where blocks have one choice a position it does as ``Auto`` does.
    """

    others: Calibration = field(default_factory=Together)
    """What chances of choices behind the first are worth."""

    def tree(self, chances: Chances, context: int, rows: int = ROWS) -> tuple[list[Node], Choice]:
        """Which nodes to verify, in the order of their rows, and what decided that; ``rows`` at most, one of them the
        anchor's."""
        tree = best_first([self._worth(position) for position in chances], rows)
        costs, price = self.table.at(context), self.price(context)
        tokens = accumulate((node.chance for node in tree), initial=1.0)
        worth = [expected - price * cost for expected, cost in zip(tokens, costs.verify, strict=False)]
        width = TRY if self.trying else max(range(len(worth)), key=worth.__getitem__)
        edge = min(width, len(tree) - 1)
        cost_ms = costs.verify[edge + 1] - costs.verify[edge]
        return in_rows(tree[:width]), Choice(width, tree[edge].chance, cost_ms, price)

    def rebuilt(self, chances: Chances, parents: Sequence[int], choices: Sequence[int]) -> list[Node]:
        """A tree that was chosen elsewhere, from the parents and choices of its rows behind the anchor's.

        What its nodes are worth is what it is by now.
        """
        worth = [self._worth(position) for position in chances]
        tree = [Node(0, 0, 0, 1.0)]
        for parent, choice in zip(parents, choices, strict=True):
            before = tree[parent]
            tree.append(Node(parent, before.depth + 1, choice, before.chance * worth[before.depth][choice]))
        return tree[1:]

    def saw(self, chances: Chances, tree: Sequence[Node], path: Sequence[int], context: int) -> None:
        """What came of a round with a draft; ``path``: the accepted rows. ``observe`` is told of the others."""
        costs = self.table.at(context)
        round_ms = costs.round(len(tree))
        if self._trying:
            self._judge(len(path) + 1, costs)
            return
        expected = sum((node.chance for node in tree), start=1.0)
        changed = bool(tree) and self._has_changed(chances[0][0], len(path), round_ms / costs.rest - 1)
        for row, node in enumerate(tree, 1):
            if node.parent in (0, *path):
                calibration = self.others if node.choice else self.calibration
                calibration.observe(chances[node.depth - 1][node.choice], row in path)
        self._book((len(path) + 1 + expected) / 2, round_ms, changed, costs)

    def _worth(self, position: Sequence[float]) -> list[float]:
        """Chances as they turned out so far: falling, and no more than 1 in all."""
        found = [self.calibration.chance(position[0])]
        for chance in position[1:]:
            found.append(max(min(self.others.chance(chance), found[-1], 1 - sum(found)), 0.0))
        return found
