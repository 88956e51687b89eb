"""What every policy would have made of a text. A policy changes where rounds start, never the text, so one recording
with a draft at every position tells it exactly. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..speculation.costs import CostTable
from ..speculation.trees import accepted_path
from ..speculation.verify_width import Policy


class Anchor(NamedTuple):
    """A position of a text, and the draft that starts there."""

    confidences: tuple[float, ...]
    """What the drafter gave each of its tokens, as far as the text goes."""
    num_right: int
    """How many of these the target says too, before the first that it doesn't."""

    @property
    def chances(self) -> tuple[tuple[float, ...], ...]:
        """As of a ``Block`` with one choice a position."""
        return tuple((each,) for each in self.confidences)

    @property
    def said(self) -> tuple[int, ...]:
        return (0,) * self.num_right + (-1,) * (len(self.confidences) - self.num_right)


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

    def known(self) -> Anchor:
        """The chain of somebody who knows beforehand which choices are right, as far as one of them is."""
        right = next((i for i, choice in enumerate(self.said) if choice < 0), len(self.said))
        chances = zip(self.chances, self.said, strict=True)
        return Anchor(tuple(position[max(choice, 0)] for position, choice in chances), right)


@dataclass(frozen=True, slots=True)
class Played:
    """What a policy made of a recording."""

    tokens: int
    rounds: int
    milliseconds: float

    @property
    def tok_s(self) -> float:
        return 1e3 * self.tokens / self.milliseconds


def play(
    policy: Policy, drafts: Sequence[Anchor] | Sequence[Block], table: CostTable, prompt_length: int = 0
) -> Played:
    """Runs a policy over a whole recording at the costs of ``table``; a tree's rows cost what a chain's do."""
    position, rounds, milliseconds = 0, 0, 0.0
    while position < len(drafts):
        context, tokens = prompt_length + position, 1
        costs = table.at(context)
        if policy.wants_draft(context):
            chances = drafts[position].chances
            tree, _ = policy.choose(chances, context)
            path = accepted_path(tree, drafts[position].said)
            milliseconds += costs.round(len(tree))
            policy.observe(chances, tree, path, context)
            tokens += len(path)
        else:
            # A drafter that is never asked need not be told of anything.
            milliseconds += costs.plain if policy.pause(context) is None else costs.rest
            policy.observe((), (), (), context)
        position += tokens
        rounds += 1
    return Played(min(position, len(drafts)), rounds, milliseconds)


def play_oracle(anchors: Sequence[Anchor], table: CostTable, prompt_length: int = 0) -> Played:
    """The fastest way through a recording, knowing beforehand which drafts are right: an upper bound for policies."""
    end = len(anchors)
    best: list[tuple[float, int]] = [(0.0, 0)] * (end + 1)
    """From each position to the end: milliseconds and rounds."""
    for position in range(end - 1, -1, -1):
        costs, right = table.at(prompt_length + position), anchors[position].num_right
        ways = [(costs.rest, 1), *((costs.round(width), width + 1) for width in range(1, right + 1))]
        best[position] = min(
            (milliseconds + best[min(position + tokens, end)][0], 1 + best[min(position + tokens, end)][1])
            for milliseconds, tokens in ways
        )
    milliseconds, rounds = best[0]
    return Played(end, rounds, milliseconds)
