"""Reads the records that rounds on the device leave for the host."""

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
    MOST_LANES,
    NUMBERS,
    PARENTS,
    PATH,
    PROBABILITIES,
    ROWS,
    TARGET_PROBABILITIES,
    TOKENS,
    WIDTH,
    list_at,
)
from ..kernels.toolchain.jit import MAX_ROWS
from ..speculation import trees
from ..speculation.choice import RoundPlan
from ..speculation.lookup import LookupMatch
from ..speculation.trees import CHOICES, Node, chain, extended, is_chain, placed
from .rounds import Verified, verified


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """What a round on the device did. A chain is described as the tree that it is."""

    tree: Sequence[Node]
    """The drafted tokens that were verified, in row order."""
    drafted_rows: int
    """Rows of the draft, the anchor's included; 1 without one."""
    draft_ids: tuple[int, ...]
    chances: tuple[tuple[float, ...], ...]
    """By position, the probabilities of the drafter's choices."""
    edge_chance: float
    edge_cost_ms: float
    """Milliseconds that verifying the token at the edge adds: with its chance and the price, what decided how much was
    verified."""
    path: Sequence[int]
    """The accepted drafts' rows, in the order of the text."""
    committed: tuple[int, ...]
    """The tokens whose rows enter the caches: the anchor, then all emitted ones but the last."""
    emitted: tuple[int, ...]
    probabilities: tuple[float, ...]
    target_probabilities: tuple[float, ...]
    """The target's probabilities of first choices, up to the first one behind the accepted path."""
    told: tuple[Verified, ...]
    """The tree with its tokens; empty where it was a chain."""
    match: LookupMatch | None
    """The match by which drafts were looked up; None where all are the drafter's."""
    beside: tuple[int, ...]
    """By position, which of the drafter's choices a looked up chain that entered a tree went on with."""
    num_agreed: int
    """How many tokens of the looked up chain, from the first on, the drafter guessed, too."""

    @classmethod
    def read(cls, record: Tensor, is_tree: bool, plan: RoundPlan) -> RoundRecord | None:
        """Reads an int32 record on the host. ``is_tree``: whether the round was to draft a tree. None for a round
        behind the end."""
        width, drafted_rows = _number(record, WIDTH), _number(record, DRAFTED) if plan.draft else 1
        if width == 0:
            return None
        found = _number(record, LOOKED_UP) if plan.lookup else 0
        looked_up, beside = (0, _ints(record, BESIDE_CHOICES, found)) if is_tree else (found, ())
        accepted, emitted, drafted = _number(record, ACCEPTED), _number(record, EMITTED), looked_up or drafted_rows - 1
        lanes = MOST_LANES if plan.is_wide else MAX_ROWS
        tokens = _ints(record, list_at(ROWS, lanes), lanes)
        if is_tree:
            given = _reals(record, CHOICE_PROBABILITIES, drafted * CHOICES)
            chances = tuple(given[first : first + CHOICES] for first in range(0, len(given), CHOICES))
            every = extended(chances, _reals(record, BESIDE_CHANCES, len(beside)))
            tree = placed(_ints(record, PARENTS + 1, width - 1), _ints(record, NUMBERS + 1, width - 1), every)
            draft_ids, path = _ints(record, DRAFTS, drafted), _ints(record, PATH, MAX_ROWS)
        else:
            given = _reals(record, list_at(DRAFT_PROBABILITIES, lanes), drafted)
            chances = every = tuple((each,) for each in given)
            tree = chain(width - 1)
            draft_ids, path = tokens[1 : drafted + 1], tuple(range(lanes))
        judged = min(accepted + 1, width - 1 if is_chain(tree) else drafted)
        guesses = looked_up or any(node.choice == trees.LOOKED_UP for node in tree)
        match = LookupMatch(_number(record, MATCH_LENGTH), _number(record, MATCH_DISTANCE)) if guesses else None
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
            emitted=_ints(record, list_at(TOKENS, lanes), emitted),
            probabilities=_reals(record, list_at(PROBABILITIES, lanes), emitted),
            target_probabilities=_reals(record, list_at(TARGET_PROBABILITIES, lanes), judged),
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
    """Reads ``count`` fp32 numbers that a record holds as int32 bits."""
    return _ints(record.view(torch.float32), start, count)
