"""How much of a draft to verify, decided on the device: the choice of ``width.Auto``, between draft and verification.

The host would have to wait for the draft to decide, and the GPU for the host. So the host only sends what the choice
is made by (prices, costs, and what the drafter's confidence was worth so far), one round behind.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...speculation.verify_width import NUM_BINS, PRIOR_WEIGHT, TRY, Auto
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, jit, tl
from .accept import CHANCE, COST_MS, RoundState

CHOOSES, PRICE = 0, 1
"""Where the numbers say how to choose, and what a millisecond is worth."""
WHOLE, WORTH, TRIAL = range(3)
"""Ways to choose: whole drafts are verified, what is worth it, or what a try looks at."""
ACCEPTED, CONFIDENCE = 2, 2 + NUM_BINS
"""Where the calibration's sums begin."""
VERIFY_MS = 2 + 2 * NUM_BINS
"""Where the costs of passes over 1 to 16 rows begin."""
NUM_NUMBERS = VERIFY_MS + MAX_ROWS


def policy_numbers(policy: Auto | None, context: int) -> Tensor:
    """What the choice is made by at this context length, fp32 [38] on the host; None verifies whole drafts."""
    if policy is None:
        return torch.full((NUM_NUMBERS,), float(WHOLE))
    calibration, verify = policy.calibration, policy.table.at(context).verify
    way = float(TRIAL if policy.trying else WORTH)
    numbers = [way, policy.price(context), *calibration.accepted, *calibration.confidence, *verify]
    return torch.tensor(numbers, dtype=torch.float32)


def choose_width(state: RoundState, numbers: Tensor, drafter_probability: Tensor, scripted: Tensor) -> None:
    """Narrows ``state.width`` to the rows worth verifying; ``drafter_probability`` fp32 [16] of the drafts.

    ``scripted`` fp32 [512, 16], for measuring: what takes the place of these with each scripted acceptance; negative
    numbers leave them alone.
    """
    _choose[(1,)](
        state.width,
        state.record,
        numbers,
        drafter_probability,
        scripted,
        state.script_length,
        state.script_place,
        WHOLE=WHOLE,
        TRIAL=TRIAL,
        TRY=TRY,
        NUM_BINS=NUM_BINS,
        PRIOR_WEIGHT=PRIOR_WEIGHT,
        CHOOSES=CHOOSES,
        PRICE=PRICE,
        ACCEPTED=ACCEPTED,
        CONFIDENCE=CONFIDENCE,
        VERIFY_MS=VERIFY_MS,
        CHANCE=CHANCE,
        COST_MS=COST_MS,
        num_warps=1,
    )


@jit
def _times(left: tl.tensor, right: tl.tensor) -> tl.tensor:
    return left * right


@early_kernel
def _choose(
    width_inout: tl.tensor,
    record: tl.tensor,
    numbers: tl.tensor,
    drafter_probability: tl.tensor,
    scripted: tl.tensor,
    script_length: tl.tensor,
    script_place: tl.tensor,
    WHOLE: tl.constexpr,
    TRIAL: tl.constexpr,
    TRY: tl.constexpr,
    NUM_BINS: tl.constexpr,
    PRIOR_WEIGHT: tl.constexpr,
    CHOOSES: tl.constexpr,
    PRICE: tl.constexpr,
    ACCEPTED: tl.constexpr,
    CONFIDENCE: tl.constexpr,
    VERIFY_MS: tl.constexpr,
    CHANCE: tl.constexpr,
    COST_MS: tl.constexpr,
) -> None:
    wait_for_inputs()
    let_next_start()
    width = tl.load(width_inout)
    way = tl.load(numbers + CHOOSES)
    if (way != WHOLE) & (width > 1):
        lane = tl.arange(0, 16)
        live = lane < width - 1
        confidence = tl.load(drafter_probability + lane, mask=live, other=0.0)
        steps, place = tl.load(script_length), tl.load(script_place)
        said = tl.load(scripted + place % tl.maximum(steps, 1) * 16 + lane, mask=live & (steps > 0), other=-1.0)
        confidence = tl.where(said < 0, confidence, said)
        tl.store(drafter_probability + lane, confidence, mask=live)
        bin = tl.minimum((confidence * NUM_BINS).to(tl.int32), NUM_BINS - 1)
        found = tl.load(numbers + ACCEPTED + bin) + PRIOR_WEIGHT * confidence
        expected = tl.load(numbers + CONFIDENCE + bin) + PRIOR_WEIGHT * confidence
        known = expected > 0
        chance = tl.where(known, tl.minimum(confidence * found / tl.where(known, expected, 1.0), 1.0), confidence)
        kept = tl.associative_scan(tl.where(live, chance, 0.0), 0, _times)
        before = tl.load(numbers + VERIFY_MS + lane)
        after = tl.load(numbers + VERIFY_MS + lane + 1, mask=lane < 15, other=0.0)
        price = tl.load(numbers + PRICE)
        # Entry i: what verifying drafts 0 .. i is worth. Against it stands verifying none.
        worth = tl.where(live, 1.0 + tl.cumsum(kept, 0) - price * after, float("-inf"))
        none = 1.0 - price * tl.load(numbers + VERIFY_MS)
        best = tl.max(worth, 0)
        first_best = tl.min(tl.where(worth == best, lane, 16), 0)
        chosen = tl.where(way == TRIAL, TRY, tl.where(best > none, first_best + 1, 0))
        # A scripted acceptance is over with its draft, also when nothing of that is looked at.
        tl.store(script_place, place + 1, mask=(chosen == 0) & (steps > 0))
        at_edge = lane == tl.minimum(chosen, width - 2)
        tl.store(width_inout, chosen + 1)
        edge_chance = tl.sum(tl.where(at_edge, kept, 0.0), 0)
        edge_cost = tl.sum(tl.where(at_edge, after - before, 0.0), 0)
        tl.store(record + CHANCE, edge_chance.to(tl.int32, bitcast=True))
        tl.store(record + COST_MS, edge_cost.to(tl.int32, bitcast=True))
