"""Reads the records that rounds on the device leave for the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..commands import GenerationSettings
from ..events import Match, WidthChoice
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
from ..speculation.trees import CHOICES, Node, chain, extended, is_chain, placed
from .rounds import Round, probabilities_of


class DeviceOutcome(NamedTuple):
    """What a policy learns of a round on the device, and the caches follow, beside the :class:`Round` that it was."""

    tree: Sequence[Node]
    """The drafted tokens that were verified, in row order; a chain as the tree that it is."""
    path: Sequence[int]
    """The accepted drafts' rows, in the order of the text."""
    chances: tuple[tuple[float, ...], ...]
    """By position, the probabilities of the drafter's choices."""
    drafted_rows: int
    """Rows of the draft, the anchor's included; 1 without one."""
    beside: tuple[int, ...]
    """By position, which of the drafter's choices a looked up chain that entered a tree went on with."""


def read_round(
    record: Tensor, is_tree: bool, plan: RoundPlan, settings: GenerationSettings, price: float | None
) -> tuple[Round, DeviceOutcome] | None:
    """Reads an int32 record on the host; times, context and end are the caller's to add. None for a round behind the
    end. ``is_tree``: whether the round was to draft a tree; ``price``: what a millisecond was worth to the policy that
    chose, in tokens; None where none chose."""
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
        draft_ids, path = _ints(record, DRAFTS, drafted), _ints(record, PATH, MAX_ROWS)[1 : accepted + 1]
    else:
        given = _reals(record, list_at(DRAFT_PROBABILITIES, lanes), drafted)
        chances = every = tuple((each,) for each in given)
        tree = chain(width - 1)
        draft_ids, path = tokens[1 : drafted + 1], tuple(range(1, accepted + 1))
    branches = not is_chain(tree)
    judged = min(accepted + 1, drafted if branches else width - 1)
    guesses = looked_up or any(node.choice == trees.LOOKED_UP for node in tree)
    choice = None
    if price is not None and chances:
        choice = WidthChoice(_reals(record, CHANCE, 1)[0], _reals(record, COST_MS, 1)[0], 1e3 * price)
    done = Round(
        emitted=_ints(record, list_at(TOKENS, lanes), emitted),
        probabilities=_reals(record, list_at(PROBABILITIES, lanes), emitted),
        verify_width=width,
        total_ms=0.0,
        context_length=0,
        settings=settings,
        finish=None,
        draft_ids=draft_ids,
        draft_probabilities=tuple(position[0] for position in chances),
        target_probabilities=_reals(record, list_at(TARGET_PROBABILITIES, lanes), judged),
        num_accepted=len(path),
        choice=choice,
        tree=tree if branches else (),
        tree_ids=tokens[1:width] if branches else (),
        tree_probabilities=probabilities_of(tree, every) if branches else (),
        match=Match(_number(record, MATCH_LENGTH), _number(record, MATCH_DISTANCE)) if guesses else None,
        num_agreed=_number(record, AGREED) if looked_up else 0,
    )
    return done, DeviceOutcome(tree, path, chances, drafted_rows, beside)


def _number(record: Tensor, place: Any) -> int:
    return int(record[int(place)])


def _ints(record: Tensor, start: Any, count: int) -> tuple[int, ...]:
    return tuple(record[int(start) : int(start) + count].tolist())


def _reals(record: Tensor, start: Any, count: int) -> tuple[float, ...]:
    """Reads ``count`` fp32 numbers that a record holds as int32 bits."""
    return _ints(record.view(torch.float32), start, count)
