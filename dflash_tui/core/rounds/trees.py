"""Trees of drafts by position: what was kept, which further choices were verified. Rounds without a tree have one
choice a position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.events import DraftToken, Step, TreeToken, accepted_in

ChoiceFate = Literal["accepted", "rejected", "discarded"]
"""``discarded`` choices were never judged: the target read another text before them."""


@dataclass(frozen=True, slots=True)
class Further:
    """A verified choice of a position, other than the drafter's first; what was looked up is the last one."""

    token: TreeToken
    fate: ChoiceFate


def accepted_drafts(step: Step) -> tuple[DraftToken | TreeToken, ...]:
    if not step.tree:
        return step.draft[: step.num_accepted]
    return tuple(step.tree[row - 1] for row in accepted_in(step))


def num_positions(step: Step) -> int:
    """From how many positions the target verified a draft: no more can be kept."""
    return max((token.depth for token in step.tree), default=step.num_verified)


def further_choices(step: Step) -> list[list[Further]]:
    """Each position's choices behind the first, likeliest first; each once, with the most that came of it anywhere in
    the tree."""
    choices: list[dict[int, Further]] = [{} for _ in range(num_positions(step))] if step.tree else []
    path = (0, *accepted_in(step)) if step.tree else (0,)
    corrected = bool(step.emitted) and step.emitted[-1].verdict == "corrected"
    for row, token in enumerate(step.tree, 1):
        if not token.choice:
            continue
        judged = token.parent in (path if corrected else path[:-1])
        fate: ChoiceFate = "accepted" if row in path else "rejected" if judged else "discarded"
        here = choices[token.depth - 1]
        if fate != "discarded" or token.choice not in here:
            here[token.choice] = Further(token, fate)
    return [[here[choice] for choice in sorted(here)] for here in choices]
