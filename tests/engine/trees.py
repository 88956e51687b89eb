"""Trees of drafts: how one is built, what of it is accepted, and what it yields at given costs. Standard library only.

A block-diffusion drafter gives every position of a block chances of its own, whatever the tokens before it turn out to
be. So second choices are known in the same pass, and a tree of first and further choices can be verified in the rows
that a chain would fill. Built best first, by the product of chances (Ringel and Romano, arXiv 2604.12989).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate
from typing import NamedTuple, Protocol

from engine.tuning.play import Anchor, Played
from engine.width import FIRST_PAUSE, RATE_MEMORY, TRY, Auto, Calibration, CostTable

ROWS = 16
"""Of the widest pass: the anchor and fifteen drafted tokens."""


class Block(NamedTuple):
    """What the drafter gave the positions behind a token, as far as the text goes."""

    chances: tuple[tuple[float, ...], ...]
    """By position, of its choices, the likeliest first."""
    said: tuple[int, ...]
    """Which of these the text says, by position; -1 where it says none of them."""

    def chain(self) -> Anchor:
        """The same, of first choices alone."""
        right = next((i for i, choice in enumerate(self.said) if choice), len(self.said))
        return Anchor(tuple(position[0] for position in self.chances), right)


class Node(NamedTuple):
    """A drafted token. Row 0 of a pass is the anchor's; the node of index i in a tree has row i + 1."""

    parent: int
    """Its row, less than the node's own."""
    depth: int
    """1 right behind the anchor."""
    choice: int
    chance: float
    """That it and all between the anchor and it are right."""


def best_first(chances: Sequence[Sequence[float]], rows: int = ROWS) -> list[Node]:
    """The likeliest nodes that fit into ``rows`` beside the anchor, the likeliest first. ``chances``: a block's."""
    tree: list[Node] = []
    waiting: list[tuple[float, int, int, int, float]] = []

    def offer(parent: int, depth: int, choice: int, before: float) -> None:
        if depth <= len(chances) and choice < len(chances[depth - 1]):
            heappush(waiting, (-before * chances[depth - 1][choice], depth, parent, choice, before))

    offer(0, 1, 0, 1.0)
    while waiting and len(tree) < rows - 1:
        negative, depth, parent, choice, before = heappop(waiting)
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


class TreePolicy(Protocol):
    """As ``engine.width.Policy``, of trees."""

    def wants_draft(self, context: int) -> bool: ...

    def tree(self, block: Block, context: int) -> list[Node]:
        """Which nodes to verify."""

    def saw(self, block: Block, tree: Sequence[Node], path: Sequence[int], context: int) -> None:
        """What came of a round with a draft: rows of the nodes that were accepted."""

    def observe(self, confidences: Sequence[float], num_verified: int, num_accepted: int, context: int) -> None:
        """Told of rounds without one."""


class WholeTrees:
    """All rows, every round."""

    def wants_draft(self, context: int) -> bool:
        return True

    def tree(self, block: Block, context: int) -> list[Node]:
        return best_first(block.chances)

    def saw(self, block: Block, tree: Sequence[Node], path: Sequence[int], context: int) -> None:
        pass

    def observe(self, confidences: Sequence[float], num_verified: int, num_accepted: int, context: int) -> None:
        pass


@dataclass(slots=True)
class AutoTrees(Auto):
    """``Auto``, choosing how many of a tree's nodes to verify.

    Where blocks have one choice a position it does as ``Auto`` does.
    """

    others: Calibration = field(default_factory=Calibration)
    """What chances of choices behind the first are worth."""

    def tree(self, block: Block, context: int) -> list[Node]:
        tree = best_first([self._worth(position) for position in block.chances])
        costs, price = self.table.at(context), self.price(context)
        tokens = accumulate((node.chance for node in tree), initial=1.0)
        worth = [expected - price * cost for expected, cost in zip(tokens, costs.verify, strict=False)]
        return tree[: TRY if self.trying else max(range(len(worth)), key=worth.__getitem__)]

    def saw(self, block: Block, tree: Sequence[Node], path: Sequence[int], context: int) -> None:
        costs = self.table.at(context)
        round_ms = costs.round(len(tree))
        if self.trying:
            self._judge(len(path) + 1, costs)
            return
        expected = 1 + sum(node.chance for node in tree)
        changed = bool(tree) and self._has_changed(block.chances[0][0], len(path), round_ms / costs.rest - 1)
        for row, node in enumerate(tree, 1):
            if node.parent in (0, *path):
                calibration = self.others if node.choice else self.calibration
                calibration.observe(block.chances[node.depth - 1][node.choice], row in path)
        self._tokens = RATE_MEMORY * self._tokens + (len(path) + 1 + expected) / 2
        self._milliseconds = RATE_MEMORY * self._milliseconds + round_ms
        if changed:
            self.calibration = self._before
        if changed or self._tokens * costs.rest < self._milliseconds:
            self._rest(costs)
        else:
            self._next_pause = max(self._next_pause // 2, FIRST_PAUSE)

    def _worth(self, position: Sequence[float]) -> list[float]:
        """Chances as they turned out so far: falling, and no more than 1 in all."""
        found = [self.calibration.chance(position[0])]
        for chance in position[1:]:
            found.append(max(min(self.others.chance(chance), found[-1], 1 - sum(found)), 0.0))
        return found


def play_trees(policy: TreePolicy, blocks: Sequence[Block], table: CostTable, prompt_length: int = 0) -> Played:
    """``engine.tuning.play.play``, of trees: a pass over a tree's rows costs what one over a chain's does."""
    position, rounds, milliseconds = 0, 0, 0.0
    while position < len(blocks):
        block, context = blocks[position], prompt_length + position
        if policy.wants_draft(context):
            tree = policy.tree(block, context)
            path = accepted_path(tree, block.said)
            milliseconds += table.at(context).round(len(tree))
            policy.saw(block, tree, path, context)
            position += len(path) + 1
        else:
            milliseconds += table.at(context).rest
            policy.observe((), 0, 0, context)
            position += 1
        rounds += 1
    return Played(min(position, len(blocks)), rounds, milliseconds)
