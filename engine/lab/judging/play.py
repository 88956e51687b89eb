"""Plays policies over recorded texts. A policy changes where rounds start, never the text, so one recording with a
draft at every position tells exactly what every policy would have made of it. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...speculation.choice import LookupOutcome
from ...speculation.costs import CostTable
from ...speculation.lookup import LookedUpChain
from ...speculation.policy import Policy
from ...speculation.trees import LOOKED_UP, ROWS, Node, accepted_path


class RecordedDraft(NamedTuple):
    """A position of a text, and the draft that starts there."""

    confidences: tuple[float, ...]
    """The drafter's probability of each token of the draft, as far as the text goes."""
    num_right: int
    """How many of these tokens equal the text, before the first that doesn't."""

    @property
    def chances(self) -> tuple[tuple[float, ...], ...]:
        """The confidences as ``RecordedChoices.chances``, with one choice at each position."""
        return tuple((each,) for each in self.confidences)

    @property
    def taken_choices(self) -> tuple[int, ...]:
        return (0,) * self.num_right + (-1,) * (len(self.confidences) - self.num_right)


class RecordedChoices(NamedTuple):
    """The drafter's choices at the positions behind a token, as far as the text goes."""

    chances: tuple[tuple[float, ...], ...]
    """By position, the probabilities of its choices, the likeliest first."""
    taken_choices: tuple[int, ...]
    """By position, which of these choices the text takes; -1 for none of them."""

    def chain(self) -> RecordedDraft:
        """The draft that consists of the drafter's first choices."""
        right = next((i for i, choice in enumerate(self.taken_choices) if choice), len(self.taken_choices))
        return RecordedDraft(tuple(position[0] for position in self.chances), right)


class RecordedLookup(NamedTuple):
    """A position of a text, and the chain that can be looked up there."""

    length: int = 0
    """How many tokens the match has; 0 where there is none."""
    size: int = 0
    """How many tokens the chain has, as far as the text goes."""
    num_right: int = 0
    agreed: int = 0
    """How many of its tokens, from the first on, the drafter guesses, too."""


NOTHING = RecordedLookup()


@dataclass(frozen=True, slots=True)
class Played:
    """What a policy made of a recording: its rounds, tokens and milliseconds."""

    tokens: int
    rounds: int
    milliseconds: float

    @property
    def tok_s(self) -> float:
        return 1e3 * self.tokens / self.milliseconds


def play(
    policy: Policy,
    drafts: Sequence[RecordedDraft] | Sequence[RecordedChoices],
    table: CostTable,
    prompt_length: int = 0,
    looked_up: Sequence[RecordedLookup] = (),
) -> Played:
    """Runs a policy over a whole recording at the costs of ``table``; a tree's rows cost what a chain's do. With
    ``looked_up``, a round is planned by the match known before the latest round, as on a device."""
    position, rounds, milliseconds, known = 0, 0, 0.0, 0
    while position < len(drafts):
        context, tokens = prompt_length + position, 1
        costs, here = table.at(context), looked_up[position] if looked_up else NOTHING
        plan, known = policy.plan(context, known), here.length
        chances = drafts[position].chances if plan.draft else ()
        if chances:
            chances = chances[: policy.depth(context, range(1, len(chances) + 1))]
        looked: LookedUpChain | None = None
        taken_choices = drafts[position].taken_choices
        choices: tuple[int, ...] = ()
        if plan.lookup and here.size:
            if plan.draft and isinstance(drafts[position], RecordedChoices):
                choices = _choices(here, taken_choices)
                taken_choices = (*choices[: here.num_right], *taken_choices[here.num_right :])
            looked = LookedUpChain(
                here.length, min(here.size, plan.rows - 1), here.agreed if plan.draft else 0, choices
            )
        tree: Sequence[Node] = ()
        path: list[int] = []
        taken = False
        if plan.draft or looked is not None:
            tree, _, by_lookup, _ = policy.choose(chances, context, plan.rows, looked)
            taken = bool(by_lookup)
            path = list(range(1, min(len(tree), here.num_right) + 1))
            path = path if taken else accepted_path(tree, taken_choices)
        if plan.draft:
            milliseconds += costs.round(len(tree), len(chances)) + plan.lookup * costs.lookup
        elif plan.lookup:
            milliseconds += costs.lookup + costs.verify[len(tree)]
        else:
            # A drafter that is never asked need not take anything in.
            milliseconds += costs.plain if policy.pause(context) is None else costs.rest
        tokens += len(path)
        known_of = min(here.size, max(tokens, ROWS) - 1)
        right = min(here.num_right, tokens, known_of)
        failed = right < min(known_of, tokens)
        outcome = LookupOutcome(here.length, right, failed, taken, choices) if here.length else None
        draft_ms = costs.draft + costs.step * len(chances) if chances else 0.0
        policy.observe_times(context, len(chances), len(tree) + 1, draft_ms, costs.verify[len(tree)])
        policy.observe(chances, tree, path, context, outcome)
        position += tokens
        rounds += 1
    return Played(min(position, len(drafts)), rounds, milliseconds)


def _choices(here: RecordedLookup, taken_choices: Sequence[int]) -> tuple[int, ...]:
    """By position, which of a block's choices the tokens of a looked up chain are. For wrong tokens that isn't known,
    so they count as none."""
    right = (choice if choice >= 0 else LOOKED_UP for choice in taken_choices[: here.num_right])
    return (*right, *(LOOKED_UP,) * (min(here.size, len(taken_choices)) - here.num_right))
