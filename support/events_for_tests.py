"""Rounds that obey the vocabulary's rules, made by hand."""

from __future__ import annotations

from collections.abc import Sequence

from engine.events import DraftToken, EmittedToken, Step, TreeToken
from engine.speculation.trees import ROWS, accepted_path, best_first, in_rows

Choice = tuple[int, str, float]
"""One of a position's: token id, text, the drafter's probability."""
CHANCES = (0.55, 0.25, 0.12, 0.04)
CHOICES = [
    [(10 * depth + choice, f" w{depth}{'abcd'[choice]}", chance) for choice, chance in enumerate(CHANCES)]
    for depth in range(1, 16)
]
"""Four choices of fifteen positions."""


def make_step(
    accepted: int, drafted: int, *, ending: str = "auto", index: int = 1, time: float = 0.1, text: str = "x"
) -> Step:
    """One round: ``ending`` is corrected, bonus, stop (a stop token among the accepted drafts) or auto."""
    if ending == "auto":
        ending = "bonus" if accepted == drafted else "corrected"
    draft = tuple(DraftToken(i, f"{text}{i}", 0.9) for i in range(drafted))
    kept = tuple(EmittedToken(token.id, token.text or "", "accepted") for token in draft[:accepted])
    own: tuple[EmittedToken, ...] = ()
    if not drafted:
        own = (EmittedToken(99, text, "plain"),)
    elif ending == "corrected":
        own = (EmittedToken(99, f"{text}!", "corrected"),)
    elif ending == "bonus":
        own = (EmittedToken(98, f"{text}+", "bonus"),)
    return Step(1, index, time, draft, accepted, (*kept, *own), drafted + 1, 1.0, 2.0, 3.0, 50, drafted + 1, 0.0)


def make_tree_step(
    said: Sequence[int],
    choices: Sequence[Sequence[Choice]] = CHOICES,
    *,
    rows: int = ROWS,
    own: EmittedToken | None = None,
    index: int = 1,
    time: float = 0.1,
) -> Step:
    """One round of the likeliest tree that fits into ``rows``. ``said``: which of the choices the target says at each
    position; they are kept as far as the tree goes, and ``own`` follows (by default, what ends such a round)."""
    nodes = in_rows(best_first([[chance for _, _, chance in position] for position in choices], rows))
    tree = tuple(TreeToken(*node[:3], *choices[node.depth - 1][node.choice]) for node in nodes)
    path = accepted_path(nodes, said)
    kept = [tree[row - 1] for row in path]
    given = [0.7 if token.choice == 0 else 0.3 for token in kept] + [0.2]
    known = [*given, *[None] * len(choices)]
    draft = tuple(DraftToken(*position[0], known[place]) for place, position in enumerate(choices))
    refused = any(token.parent == (path[-1] if path else 0) for token in tree)
    own = own or EmittedToken(999, " own", "corrected" if refused else "bonus", probability=0.5)
    emitted = [
        EmittedToken(token.id, token.text, "accepted", probability=chance)
        for token, chance in zip(kept, given, strict=False)
    ]
    whole, width = (*emitted, own), len(tree) + 1
    return Step(1, index, time, draft, len(path), whole, width, 1.0, 2.0, 3.0, 50, len(draft) + 1, 0.0, tree=tree)
