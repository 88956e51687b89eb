"""What the host reads of a round that the device ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..kernels.round.state import (
    ACCEPTED,
    AGREED,
    BESIDE_CHANCES,
    BESIDE_CHOICES,
    CHANCE,
    CHOICE_PROBABILITIES,
    COST_MS,
    DRAFT_PROBABILITIES,
    DRAFTED,
    DRAFTS,
    EMITTED,
    LOOKED_UP,
    MATCH_DISTANCE,
    MATCH_LENGTH,
    NUMBERS,
    PARENTS,
    PATH,
    PROBABILITIES,
    ROWS,
    TARGET_PROBABILITIES,
    TOKENS,
    WIDTH,
)
from ..kernels.toolchain.jit import MAX_ROWS
from ..speculation import trees
from ..speculation.choice import Plan
from ..speculation.lookup import Found
from ..speculation.trees import CHOICES, Node, chain, extended, is_chain, placed
from .rounds import Verified, verified


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """A chain is told of as a tree is."""

    tree: Sequence[Node]
    """What was verified."""
    drafted_rows: int
    """Rows of the draft, the anchor's included; 1 without one."""
    draft_ids: tuple[int, ...]
    chances: tuple[tuple[float, ...], ...]
    """By position, of the drafter's choices."""
    edge_chance: float
    edge_cost_ms: float
    """What decided how much was verified, where something was chosen."""
    path: Sequence[int]
    """Rows that were accepted."""
    committed: tuple[int, ...]
    """Tokens of the rows that were committed, the anchor's first."""
    emitted: tuple[int, ...]
    probabilities: tuple[float, ...]
    target_probabilities: tuple[float, ...]
    """Of first choices; the last up to one behind the accepted path."""
    told: tuple[Verified, ...]
    """The tree with its tokens; empty where it was a chain."""
    match: Found | None
    """Where drafts were looked up; None where they are the drafter's."""
    beside: tuple[int, ...]
    """Choices of a looked up chain that entered a tree."""
    num_agreed: int
    """How many of these, from the first on, the drafter guessed, too."""

    @classmethod
    def read(cls, record: Tensor, is_tree: bool, plan: Plan) -> RoundRecord | None:
        """``record`` int32 on the host; ``is_tree``: whether one was to be drafted. None after the end."""
        width, drafted_rows = _number(record, WIDTH), _number(record, DRAFTED) if plan.draft else 1
        if width == 0:
            return None
        found = _number(record, LOOKED_UP) if plan.lookup else 0
        looked_up, beside = (0, _ints(record, BESIDE_CHOICES, found)) if is_tree else (found, ())
        accepted, emitted, drafted = _number(record, ACCEPTED), _number(record, EMITTED), looked_up or drafted_rows - 1
        tokens = _ints(record, ROWS, MAX_ROWS)
        if is_tree:
            given = _reals(record, CHOICE_PROBABILITIES, drafted * CHOICES)
            chances = tuple(given[first : first + CHOICES] for first in range(0, len(given), CHOICES))
            every = extended(chances, _reals(record, BESIDE_CHANCES, len(beside)))
            tree = placed(_ints(record, PARENTS + 1, width - 1), _ints(record, NUMBERS + 1, width - 1), every)
            draft_ids, path = _ints(record, DRAFTS, drafted), _ints(record, PATH, MAX_ROWS)
        else:
            chances = every = tuple((each,) for each in _reals(record, DRAFT_PROBABILITIES, drafted))
            tree = chain(width - 1)
            draft_ids, path = tokens[1 : drafted + 1], tuple(range(MAX_ROWS))
        judged = min(accepted + 1, width - 1 if is_chain(tree) else drafted)
        guesses = looked_up or any(node.choice == trees.LOOKED_UP for node in tree)
        match = Found(_number(record, MATCH_LENGTH), _number(record, MATCH_DISTANCE)) if guesses else None
        edge_chance, edge_cost_ms = _reals(record, CHANCE, 1)[0], _reals(record, COST_MS, 1)[0]
        return cls(
            tree=tree,
            drafted_rows=drafted_rows,
            draft_ids=draft_ids,
            chances=chances,
            edge_chance=edge_chance,
            edge_cost_ms=edge_cost_ms,
            path=path[1 : accepted + 1],
            committed=tuple(tokens[row] for row in path[:emitted]),
            emitted=_ints(record, TOKENS, emitted),
            probabilities=_reals(record, PROBABILITIES, emitted),
            target_probabilities=_reals(record, TARGET_PROBABILITIES, judged),
            told=verified(tree, every, tokens),
            match=match,
            beside=beside,
            num_agreed=_number(record, AGREED) if looked_up else 0,
        )


def _number(record: Tensor, place: Any) -> int:
    return int(record[int(place)])


def _ints(record: Tensor, start: Any, count: int) -> tuple[int, ...]:
    return tuple(record[int(start) : int(start) + count].tolist())


def _reals(record: Tensor, start: Any, count: int) -> tuple[float, ...]:
    """Numbers that a record holds as fp32."""
    return _ints(record.view(torch.float32), start, count)
