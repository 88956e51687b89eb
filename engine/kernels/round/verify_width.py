"""Decides on the device how much of a draft to verify, as ``speculation.auto.Auto`` does for a chain. The host only
sends prices, costs and calibration, one round behind, so neither waits for the other."""

from __future__ import annotations

import torch
from torch import Tensor

from ...speculation import backoff, calibration
from ...speculation.choice import ChoiceNumbers
from ...speculation.lookup import LONGEST
from ...speculation.trees import WIDE_ROWS
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, jit, tl
from .state import AT_RECORD, AT_WIDTH, CHANCE, COST_MS, RoundState, constant

_BINS = calibration.NUM_BINS
BINS, PRIOR_WEIGHT, TRY = constant(_BINS), constant(calibration.PRIOR_WEIGHT), constant(backoff.TRY)

WAY, PRICE = constant(0), constant(1)
"""Places, among the numbers of a choice, of the way to choose and of how many tokens a millisecond is worth."""
WHOLE, WORTH, TRIAL = (constant(way) for way in range(3))
"""Ways to choose: verify the whole draft, what is worth it, or as much as a try does."""
ACCEPTED, CONFIDENCE = constant(2), constant(2 + _BINS)
"""Where the sums of the calibration of first choices begin."""
VERIFY_MS = constant(2 + 2 * _BINS)
"""Where the costs of passes over 1 to 16 rows begin."""
OTHERS_ACCEPTED, OTHERS_CONFIDENCE = (constant(2 + 2 * _BINS + MAX_ROWS + index * _BINS) for index in range(2))
"""Where the sums of the calibration of choices behind the first begin."""
MATCHES = constant(2 + 4 * _BINS + MAX_ROWS)
"""Where the chances of looked up tokens begin, by the length of the match, from 0 on."""
FURTHER_MS = constant(2 + 4 * _BINS + MAX_ROWS + LONGEST + 1)
"""Where the costs of passes over 17 to 64 rows begin; infinite ones where there is none."""
NUM_NUMBERS = 2 + 4 * _BINS + WIDE_ROWS[-1] + LONGEST + 1


def choice_numbers(by: ChoiceNumbers | None) -> Tensor:
    """The numbers of the choice, fp32 [139] on the host; None verifies the whole chain of first choices."""
    if by is None:
        return torch.full((NUM_NUMBERS,), float(WHOLE))
    first, others = by.calibration, by.others
    way = float(TRIAL if by.trying else WORTH)
    narrow, further = by.verify[:MAX_ROWS], by.verify[MAX_ROWS:]
    without = [float("inf")] * (WIDE_ROWS[-1] - MAX_ROWS - len(further))
    sums = [*first.accepted, *first.confidence, *narrow, *others.accepted, *others.confidence, *by.matches]
    return torch.tensor([way, by.price, *sums, *further, *without], dtype=torch.float32)


def choose_width(state: RoundState, numbers: Tensor, drafter_probability: Tensor) -> None:
    """Narrows ``state.width`` to the rows worth verifying; ``drafter_probability`` fp32 [16] of the drafts."""
    assert numbers.shape == (NUM_NUMBERS,)
    _choose[(1,)](state.numbers, numbers, drafter_probability, num_warps=1)


@jit
def chance_of(confidence: tl.tensor, accepted: tl.tensor, confidences: tl.tensor) -> tl.tensor:
    """``Calibration.chance`` of each confidence; ``accepted`` and ``confidences`` point to the calibration's sums."""
    bin = tl.minimum((confidence * BINS).to(tl.int32), BINS - 1)
    successes = tl.load(accepted + bin) + PRIOR_WEIGHT * confidence
    expected = tl.load(confidences + bin) + PRIOR_WEIGHT * confidence
    known = expected > 0
    return tl.where(known, tl.minimum(confidence * successes / tl.where(known, expected, 1.0), 1.0), confidence)


@jit
def times(left: tl.tensor, right: tl.tensor) -> tl.tensor:
    return left * right


@early_kernel
def _choose(state: tl.tensor, numbers: tl.tensor, drafter_probability: tl.tensor) -> None:
    wait_for_inputs()
    let_next_start()
    width = tl.load(state + AT_WIDTH)
    way = tl.load(numbers + WAY)
    if (way != WHOLE) & (width > 1):
        lane = tl.arange(0, 16)
        live = lane < width - 1
        confidence = tl.load(drafter_probability + lane, mask=live, other=0.0)
        chance = chance_of(confidence, numbers + ACCEPTED, numbers + CONFIDENCE)
        chances = tl.associative_scan(tl.where(live, chance, 0.0), 0, times)
        before = tl.load(numbers + VERIFY_MS + lane)
        after = tl.load(numbers + VERIFY_MS + lane + 1, mask=lane < 15, other=0.0)
        price = tl.load(numbers + PRICE)
        # Entry i: the worth of verifying drafts 0 .. i. Against it stands verifying none.
        worth = tl.where(live, 1.0 + tl.cumsum(chances, 0) - price * after, float("-inf"))
        none = 1.0 - price * tl.load(numbers + VERIFY_MS)
        best = tl.max(worth, 0)
        first_best = tl.min(tl.where(worth == best, lane, 16), 0)
        chosen = tl.where(way == TRIAL, TRY, tl.where(best > none, first_best + 1, 0))
        at_edge = lane == tl.minimum(chosen, width - 2)
        edge_chance = tl.sum(tl.where(at_edge, chances, 0.0), 0)
        edge_cost = tl.sum(tl.where(at_edge, after - before, 0.0), 0)
        tl.store(state + AT_WIDTH, chosen + 1)
        tl.store(state + AT_RECORD + CHANCE, edge_chance.to(tl.int32, bitcast=True))
        tl.store(state + AT_RECORD + COST_MS, edge_cost.to(tl.int32, bitcast=True))
