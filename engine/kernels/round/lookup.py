"""The text as its own drafter, on the device: ``speculation.lookup`` defines what is found, ``auto.Auto`` what is made
of it. Programs search the whole text side by side; one of them then drafts what followed where the newest tokens stood
before, beside the drafter's chain or in its place."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...speculation import lookup
from ...speculation.trees import WIDE_ROWS
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, jit, tl
from .state import (
    AGREED,
    AT_CURSOR,
    AT_DRAFT_WIDTH,
    AT_RECORD,
    AT_STOPS,
    AT_WIDTH,
    CHANCE,
    COST_MS,
    LOOKED_UP,
    MATCH_DISTANCE,
    MATCH_LENGTH,
    RoundState,
    constant,
)
from .verify_width import ACCEPTED, CONFIDENCE, FURTHER_MS, MATCHES, NUM_NUMBERS, PRICE, VERIFY_MS, chance_of, times

SHORTEST, LONGEST = constant(lookup.SHORTEST), constant(lookup.LONGEST)
PLACES = constant(2**24)
"""More places than a text has: a match is told by one number, its length times this plus the place behind it."""
PROGRAMS, BLOCK = 128, 512
"""How many programs search a text, and how many places each compares at once."""


@dataclass(frozen=True, slots=True)
class LookupText:
    """A text on the device, as lookups search it."""

    ids: Tensor
    """int32 [context + 64]: the token of every position up to the anchor's; anything behind it. Rounds write theirs."""
    best: Tensor
    """int32 [128]: the best match that each program of a search found."""

    @classmethod
    def allocate(cls, max_context: int, device: torch.device) -> LookupText:
        def numbers(count: int) -> Tensor:
            return torch.zeros(count, dtype=torch.int32, device=device)

        return cls(numbers(max_context + WIDE_ROWS[-1]), numbers(PROGRAMS))


def look_up(state: RoundState, text: LookupText) -> None:
    """Finds the longest earlier occurrence of the tokens up to ``state.cursor``."""
    _look_up[(PROGRAMS,)](
        state.numbers, text.ids, text.best,
        SHORTEST=SHORTEST, LONGEST=LONGEST, PLACES=PLACES, PROGRAMS=PROGRAMS, BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip


def choose_chain(
    state: RoundState,
    numbers: Tensor,
    ids: Tensor,
    text: LookupText,
    probability: Tensor,
    *,
    drafted: bool,
    lanes: int = MAX_ROWS,
) -> None:
    """Behind ``look_up``: puts the chain that is worth more into ``ids`` int64 [16 or more], from place 1 on, narrows
    ``state.width`` to the rows worth verifying, and fills the record. ``drafted``: a drafter's chain stands there
    already, with its ``probability`` fp32 [16]; a looked up chain gets that of its match. ``lanes``: 64 in a wide
    round, which never drafts, and whose tensors are that long. A looked up chain has at most ``state.width`` rows, the
    drafter's ``state.draft_width``."""
    assert numbers.shape == (NUM_NUMBERS,) and len(ids) > lanes <= len(probability)
    assert lanes == MAX_ROWS or not drafted
    _choose_chain[(1,)](
        state.numbers, numbers, ids, text.ids, text.best, probability,
        SHORTEST=SHORTEST, LONGEST=LONGEST, PLACES=PLACES, PROGRAMS=PROGRAMS, HAS_DRAFT=drafted, LANES=lanes,
        num_warps=1,
    )  # fmt: skip


@early_kernel
def _look_up(
    state: tl.tensor, text: tl.tensor, best_out: tl.tensor,
    SHORTEST: tl.constexpr, LONGEST: tl.constexpr, PLACES: tl.constexpr, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each number: every ``PROGRAMS``-th block of places."""
    wait_for_inputs()
    newest = tl.load(state + AT_CURSOR)
    best = tl.zeros((BLOCK,), tl.int32)
    for start in range(tl.program_id(0) * BLOCK, newest, PROGRAMS * BLOCK):
        end = start + tl.arange(0, BLOCK)
        # The first tokens of all places are compared without waiting for one another; most places end here.
        same = end < newest
        for near in tl.static_range(SHORTEST):
            token = tl.load(text + tl.maximum(newest - near, 0))
            there = tl.load(text + end - near, mask=(end < newest) & (end >= near), other=-1)
            same = same & (there == token)
        length = tl.where(same, SHORTEST, 0)
        left = tl.max(same.to(tl.int32), 0) * (LONGEST - SHORTEST)
        while left > 0:
            back = LONGEST - left
            wanted = tl.load(text + tl.maximum(newest - back, 0))
            earlier_token = tl.load(text + end - back, mask=same & (end >= back), other=-1)
            same = same & (earlier_token == wanted)
            length += same.to(tl.int32)
            left = tl.max(same.to(tl.int32), 0) * (left - 1)
        best = tl.maximum(best, tl.where(length > 0, length * PLACES + end + 1, 0))
    let_next_start()
    tl.store(best_out + tl.program_id(0), tl.max(best, 0))


@jit
def found_chain(
    state: tl.tensor, text: tl.tensor, best_in: tl.tensor, lane: tl.tensor, width: tl.tensor,
    SHORTEST: tl.constexpr, PLACES: tl.constexpr, PROGRAMS: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """What ``look_up`` found: length and distance of the match (0 without one), the tokens behind it, one for each
    ``lane``, and how many of them fit into ``width`` rows, up to a stop token."""
    newest = tl.load(state + AT_CURSOR)
    stop = tl.load(state + AT_STOPS + tl.arange(0, 16))
    best = tl.max(tl.load(best_in + tl.arange(0, PROGRAMS)), 0)
    length, distance = best // PLACES, newest + 1 - best % PLACES
    matches = length >= SHORTEST
    period = tl.where(matches, distance, 1)
    guess = tl.load(text + newest + 1 - period + lane % period)
    ends = tl.max((guess[:, None] == stop[None, :]).to(tl.int32), 1) > 0
    room = tl.maximum(width - 1, 0)
    count = tl.minimum(tl.min(tl.where(ends, lane + 1, room), 0), room)
    return tl.where(matches, length, 0), tl.where(matches, distance, 0), guess, tl.where(matches, count, 0)


@jit
def _worth(chance: tl.tensor, live: tl.tensor, price: tl.tensor, after: tl.tensor) -> tl.tensor:
    """Entry i: the worth of verifying tokens 0 .. i of a chain."""
    return tl.where(live, 1.0 + tl.cumsum(chance, 0) - price * after, float("-inf"))


@early_kernel
def _choose_chain(
    state: tl.tensor, numbers: tl.tensor, ids: tl.tensor, text: tl.tensor, best_in: tl.tensor, probability: tl.tensor,
    SHORTEST: tl.constexpr, LONGEST: tl.constexpr, PLACES: tl.constexpr, PROGRAMS: tl.constexpr,
    HAS_DRAFT: tl.constexpr, LANES: tl.constexpr,
) -> None:  # fmt: skip
    wait_for_inputs()
    let_next_start()
    width = tl.load(state + AT_WIDTH)
    drafted = tl.load(state + AT_DRAFT_WIDTH) if HAS_DRAFT else 0
    if width > 0:
        lane = tl.arange(0, LANES)
        price = tl.load(numbers + PRICE)
        if LANES == 16:
            before = tl.load(numbers + VERIFY_MS + lane)
            after = tl.load(numbers + VERIFY_MS + lane + 1, mask=lane < 15, other=0.0)
        else:
            before = tl.load(numbers + tl.where(lane < 16, VERIFY_MS + lane, FURTHER_MS - 16 + lane))
            cost_at = tl.where(lane < 15, VERIFY_MS + 1 + lane, FURTHER_MS - 15 + lane)
            after = tl.load(numbers + cost_at, mask=lane < LANES - 1, other=0.0)
        length, distance, guess, count = found_chain(state, text, best_in, lane, width, SHORTEST, PLACES, PROGRAMS)
        looked = lane < count
        chance = tl.load(numbers + MATCHES + tl.minimum(length + lane, LONGEST), mask=looked, other=0.0)

        none = 1.0 - price * tl.load(numbers + VERIFY_MS)
        drafted_worth = tl.zeros((LANES,), tl.float32) + float("-inf")
        drafted_kept = tl.zeros((LANES,), tl.float32)
        num_agreed = 0
        if HAS_DRAFT:
            live = lane < drafted - 1
            draft = tl.load(ids + 1 + lane, mask=live, other=-1)
            confidence = tl.load(probability + lane, mask=live, other=0.0)
            by_drafter = tl.where(live, chance_of(confidence, numbers + ACCEPTED, numbers + CONFIDENCE), 0.0)
            num_agreed = tl.min(tl.where(looked & live & (draft == guess), 16, lane), 0)
            agreed = lane < num_agreed
            both = tl.maximum(chance, by_drafter)
            chance = tl.where(agreed, both, chance)
            drafted_kept = tl.associative_scan(tl.where(agreed, both, by_drafter), 0, times)
            drafted_worth = _worth(drafted_kept, live, price, after)
        looked_kept = tl.associative_scan(tl.where(looked, chance, 0.0), 0, times)
        looked_worth = _worth(looked_kept, looked, price, after)
        takes = tl.max(looked_worth, 0) > tl.max(drafted_worth, 0)
        rows = tl.where(takes, count, tl.maximum(drafted - 1, 0))
        worth = tl.where(takes, looked_worth, drafted_worth)
        chosen_chance = tl.where(takes, looked_kept, drafted_kept)
        best = tl.max(worth, 0)
        first_best = tl.min(tl.where(worth == best, lane, LANES), 0)
        chosen = tl.where((best > none) & (rows > 0), first_best + 1, 0)
        at_edge = lane == tl.minimum(chosen, rows - 1)
        edge_chance = tl.sum(tl.where(at_edge, chosen_chance, 0.0), 0)
        edge_cost = tl.sum(tl.where(at_edge, after - before, 0.0), 0)
        taken = lane < tl.where(takes, count, 0)
        tl.store(ids + 1 + lane, guess.to(tl.int64), mask=taken)
        tl.store(probability + lane, chance, mask=taken)
        record = state + AT_RECORD
        tl.store(state + AT_WIDTH, chosen + 1)
        tl.store(record + MATCH_LENGTH, length)
        tl.store(record + MATCH_DISTANCE, distance)
        tl.store(record + LOOKED_UP, tl.where(takes, count, 0))
        tl.store(record + AGREED, num_agreed)
        tl.store(record + CHANCE, edge_chance.to(tl.int32, bitcast=True))
        tl.store(record + COST_MS, edge_cost.to(tl.int32, bitcast=True))


assert MAX_ROWS == 16, "the kernels above are written for tiles of 16 rows"
