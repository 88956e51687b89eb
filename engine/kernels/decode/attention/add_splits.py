"""Adds up the splits of attention, the last step of layers with a window. A tile's last program adds all of its splits,
in the same order in every kernel, so that a row's bits are the same in all. Sums use ``tl.fma``, because LLVM otherwise
chooses itself which product it fuses with which sum: with a sink, whose sum of weights begins with a constant 1, it
chose another one in one kernel of two."""

from __future__ import annotations

from typing import NamedTuple

from ...shared.sinks import sink_score
from ...toolchain.jit import constexpr_function, jit, tl

FEW_SPLITS, ALL_SPLITS = (tl.constexpr(3), tl.constexpr(18)) if tl else (3, 18)
"""How many splits of a single row are added without a loop: behind a short text, and of a window of 1024."""


@constexpr_function
def splits_ahead(values: int) -> int:
    """How many splits, of ``values`` numbers each, are loaded ahead: a wait for memory takes long, and registers hold
    this many."""
    return max(3, min(9, 9 * 1024 // values))


class Parts(NamedTuple):
    """What splits leave of each grouped row for whoever adds them: highest scores and sums of weights fp32 [rows], and
    mixes of values [rows, HEAD_DIM]."""

    highest: tl.tensor
    total: tl.tensor
    mixed: tl.tensor


@jit
def _begin(sinks: tl.tensor, head: tl.tensor, ROWS: tl.constexpr) -> tuple[tl.tensor, tl.tensor]:
    """The highest score and the sum of weights before the first split: -inf and 0, or, with a sink, its score and 1."""
    if sinks is None:
        return tl.full((ROWS,), float("-inf"), tl.float32), tl.zeros((ROWS,), tl.float32)
    else:
        return sink_score(sinks, head), tl.full((ROWS,), 1.0, tl.float32)


@jit
def add_splits(
    parts: Parts,
    sinks: tl.tensor,
    out: tl.tensor,
    first_part: tl.tensor,
    first_packed: tl.tensor,
    num_packed: tl.tensor,
    count: tl.tensor,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    GROUP_ROWS: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Adds the ``count`` splits of ``num_packed`` grouped rows in order, and stores their attention. A few rows are
    added at a time, so that loads overlap. A split of which a row sees nothing changes no bit: factor exactly 1, terms
    exactly 0."""
    splits: tl.constexpr = splits_ahead(ROWS * HEAD_DIM)
    lane = tl.arange(0, HEAD_DIM)
    for first in range(0, num_packed, ROWS):
        position = first + tl.arange(0, ROWS)
        valid = position < num_packed
        highest, total = _begin(sinks, tl.program_id(0) * GROUP + (first_packed + position) % GROUP, ROWS)
        mixed = tl.zeros((ROWS, HEAD_DIM), tl.float32)
        for first_split in range(0, count, splits):
            for ahead in tl.static_range(splits):  # unrolled, so that their loads are under way together
                there = valid & (first_split + ahead < count)
                at = first_part + (first_split + ahead) * GROUP_ROWS + position
                of_split = tl.load(parts.highest + at, mask=there, other=float("-inf"))
                totals = tl.load(parts.total + at, mask=there, other=0.0)
                values = tl.load(parts.mixed + at[:, None] * HEAD_DIM + lane[None, :], mask=there[:, None], other=0.0)
                now_highest = tl.maximum(highest, of_split)
                # Before a row's first visible key the highest score is -inf, and a difference of two is no number.
                shift = tl.where(now_highest == float("-inf"), 0.0, now_highest)
                fading = tl.exp2(highest - shift)
                factor = tl.exp2(of_split - shift)
                total = tl.fma(total, fading, tl.fma(totals, factor, 0.0))
                mixed = tl.fma(mixed, fading[:, None], values * factor[:, None])
                highest = now_highest
        mixed = mixed / tl.where(valid, total, 1.0)[:, None]
        packed = first_packed + position
        head = packed // GROUP * GROUP * tl.num_programs(0) + tl.program_id(0) * GROUP + packed % GROUP
        tl.store(out + head[:, None] * HEAD_DIM + lane[None, :], mixed.to(out.dtype.element_ty), mask=valid[:, None])


@jit
def add_splits_of_one_row(
    parts: Parts,
    sinks: tl.tensor,
    out: tl.tensor,
    first_part: tl.tensor,
    count: tl.tensor,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    GROUP_ROWS: tl.constexpr,
    ROWS: tl.constexpr,
    MOST: tl.constexpr,
) -> None:
    """``add_splits`` of one row with at most ``MOST`` splits, with one wait for memory, no loop and constant address
    distances. The row sees some keys of each of its splits, so a highest score is -inf only where no key counts."""
    lane = tl.arange(0, HEAD_DIM)
    for first in tl.static_range(0, GROUP, ROWS):
        position = first + tl.arange(0, ROWS)
        valid = position < GROUP
        highest_at = parts.highest + (first_part + position)
        total_at = parts.total + (first_part + position)
        mixed_at = parts.mixed + ((first_part + position)[:, None] * HEAD_DIM + lane[None, :])
        highest, total = _begin(sinks, tl.program_id(0) * GROUP + tl.minimum(position, GROUP - 1), ROWS)
        mixed = tl.zeros((ROWS, HEAD_DIM), tl.float32)
        for split in tl.static_range(MOST):
            there = valid & (split < count)
            of_split = tl.load(highest_at + split * GROUP_ROWS, mask=there, other=float("-inf"))
            totals = tl.load(total_at + split * GROUP_ROWS, mask=there, other=0.0)
            values = tl.load(mixed_at + split * GROUP_ROWS * HEAD_DIM, mask=there[:, None], other=0.0)
            now_highest = tl.maximum(highest, of_split)
            fading = tl.exp2(highest - now_highest)
            factor = tl.exp2(of_split - now_highest)
            total = tl.fma(total, fading, tl.fma(totals, factor, 0.0))
            mixed = tl.fma(mixed, fading[:, None], values * factor[:, None])
            highest = now_highest
        mixed = mixed / tl.where(valid, total, 1.0)[:, None]
        head = tl.program_id(0) * GROUP + position
        tl.store(out + head[:, None] * HEAD_DIM + lane[None, :], mixed.to(out.dtype.element_ty), mask=valid[:, None])
