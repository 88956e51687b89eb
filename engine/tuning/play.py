"""What every policy would have made of a text, in no time.

A policy changes which positions a round starts at, never the text. So one recording, with a draft from every
position, tells exactly what each policy would have accepted. Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..width import CostTable, Policy


class Anchor(NamedTuple):
    """A position of a text, and the draft that starts there."""

    confidences: tuple[float, ...]
    """What the drafter gave each of its tokens, as far as the text goes."""
    num_right: int
    """How many of these the target says too, before the first that it doesn't."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a policy made of a recording."""

    tokens: int
    rounds: int
    milliseconds: float

    @property
    def tok_s(self) -> float:
        return 1e3 * self.tokens / self.milliseconds


def play(policy: Policy, anchors: Sequence[Anchor], table: CostTable, prompt_length: int = 0) -> Played:
    """Runs a policy over a recording, from the first token to the last, at the costs of ``table``."""
    position, rounds, milliseconds = 0, 0, 0.0
    while position < len(anchors):
        anchor, context = anchors[position], prompt_length + position
        costs = table.at(context)
        if policy.wants_draft(context):
            width = policy.choose(anchor.confidences, context).num_verified
            accepted = min(anchor.num_right, width)
            milliseconds += costs.round(width)
            policy.observe(anchor.confidences, width, accepted, context)
            position += accepted + 1
        else:
            milliseconds += costs.plain
            policy.observe((), 0, 0, context)
            position += 1
        rounds += 1
    return Played(min(position, len(anchors)), rounds, milliseconds)
