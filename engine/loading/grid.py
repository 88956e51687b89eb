"""Makes INT4 of floats that already lie on a grid, as in Google's QAT checkpoints: bf16 of whole numbers times a scale
for 32 neighbours. The file doesn't say which scale, nor which number the largest of them is, so both are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..kernels.weights.int4 import Int4Weight
from ..kernels.weights.int8 import ROWS_AT_ONCE
from ..kernels.weights.panels import Rows

BLOCK = 32
"""How many neighbours share a scale."""
SCALES = (torch.bfloat16, torch.float16, torch.float32)
"""Dtypes of scales, the one to prefer first."""
TOLERANCE = 2.0**-4
"""How far numbers in units of the scale may be from whole ones: 7 * 2^-7, of two roundings to bf16. In a wrong unit
some are about an eighth away."""
EDGE = 2.0**-22
"""Relative: more than the rounding of a quotient in fp32, far less than the steps of any scale."""
SAMPLE, MOST = 512, 0.9
"""How many groups are looked at, and the share of them that must be on a grid for the weight to be on one."""


def rounded(weight: Tensor, preferred: torch.dtype = torch.bfloat16) -> Int4Weight:
    """Weights [..., rows, depth] in INT4, groups of 32. Where they lie on a grid, the restored floats round to these
    very weights, and scales have the preferred dtype if that is enough, else the narrowest that is; elsewhere it rounds
    as ``Int4Weight.of``."""
    if scales_of(weight) is None:
        return Int4Weight.of(weight)
    rows = _as_rounded(weight).flatten(0, -2)
    exact = torch.zeros(len(SCALES), dtype=torch.int64, device=weight.device)

    def parts() -> Iterator[Rows]:
        for start in range(0, len(rows), ROWS_AT_ONCE):
            grids = _find(_groups(rows[start : start + ROWS_AT_ONCE]))
            exact.add_(torch.stack([each.sum() for each in grids.exact]))
            yield start, (grids.numbers + 8).to(torch.uint8).flatten(-2), grids.unit

    whole = Int4Weight.allocate(*weight.shape, device=weight.device, scales=torch.float32).filled(parts())
    assert whole.scales is not None
    return replace(whole, scales=whole.scales.to(_narrowest(exact, preferred)))


def scales_of(weight: Tensor) -> torch.dtype | None:
    """The narrowest dtype for the scales of the grid on which a weight lies, by a sample; None where it lies on
    none."""
    rows = _as_rounded(weight).flatten(0, -2)
    groups = _groups(rows[:: max(1, rows.numel() // (BLOCK * SAMPLE))]).flatten(0, 1)
    groups = groups[:: max(1, len(groups) // SAMPLE)]
    exact = torch.stack([each.sum() for each in _find(groups).exact])
    return _narrowest(exact) if exact[-1] >= MOST * len(groups) else None


def _groups(rows: Tensor) -> Tensor:
    """Groups [n, groups, 32] of rows [n, depth]."""
    return rows.reshape(len(rows), -1, BLOCK)


def _as_rounded(weight: Tensor) -> Tensor:
    """Weights in bf16 that were bf16 before somebody saved them in fp32; others as they are."""
    if weight.dtype != torch.float32:
        return weight
    short = weight.bfloat16()
    return short if torch.equal(short.float(), weight) else weight


@dataclass(frozen=True, slots=True)
class _Found:
    numbers: Tensor
    """[..., 32]: whole numbers from -8 to 7."""
    unit: Tensor
    """fp32 [...]: the middle of the scales that explain a group; where none does, the scale of ordinary rounding."""
    exact: tuple[Tensor, ...]
    """bool [...]: whether the unit in each of ``SCALES`` explains a group."""


def _find(groups: Tensor) -> _Found:
    """The numbers and scales of groups [..., 32] in their stored dtype."""
    values = groups.float()
    furthest = values.gather(-1, values.abs().argmax(-1, keepdim=True))
    per_largest = torch.where(furthest == 0, 0.0, -1 / furthest)
    largest = torch.full_like(furthest, 8)
    is_on_grid = furthest == 0
    for number in range(1, 9):  # the largest unit that explains a group: a small one may be too small for fp16
        steps = values * (number * per_largest)
        whole = steps.round()
        fits = ((steps - whole).abs().amax(-1, keepdim=True) < TOLERANCE) & (whole.amax(-1, keepdim=True) <= 7)
        largest = torch.where(fits & ~is_on_grid, number, largest)
        is_on_grid |= fits
    numbers = (values * (largest * per_largest)).round_().clamp_(-8, 7)
    low, high = _units(groups, numbers)
    middle = torch.where(is_on_grid.squeeze(-1) & (low <= high), (low + high) / 2, furthest.abs().squeeze(-1) / 8)
    middle = torch.where(furthest.squeeze(-1) > 0, -middle, middle)
    return _Found(numbers, middle, tuple(_explains(numbers, middle.to(dtype), groups) for dtype in SCALES))


def _explains(numbers: Tensor, units: Tensor, groups: Tensor) -> Tensor:
    """bool [...]: for each of ``groups`` [..., group], whether ``numbers`` times its unit round to exactly its
    values."""
    return ((numbers * units.float()[..., None]).to(groups.dtype) == groups).all(-1)


def _units(groups: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest and the largest scale whose products with ``numbers`` [..., group] round to ``groups``, fp32 [...]
    each."""
    bits = groups.abs().contiguous().view(torch.int32 if groups.dtype == torch.float32 else torch.int16)
    size, below, above = (
        bit_patterns.view(groups.dtype).float() for bit_patterns in (bits, (bits - 1).clamp_(min=0), bits + 1)
    )
    whole = numbers.abs()
    inwards = torch.where(bits % 2 == 0, -EDGE, EDGE)  # halfway between two numbers one rounds to the even one
    low = torch.where(whole == 0, 0.0, (size + below) / (2 * whole) * (1 + inwards)).amax(-1)
    high = torch.where(whole == 0, torch.inf, (size + above) / (2 * whole) * (1 - inwards)).amin(-1)
    return low, torch.where(high == torch.inf, low, high)


def _narrowest(exact: Tensor, preferred: torch.dtype = torch.bfloat16) -> torch.dtype:
    """The preferred one of ``SCALES``, or else the first, that explains as many groups as fp32 does."""
    counts = dict(zip(SCALES, exact.tolist(), strict=True))
    return next(dtype for dtype in (preferred, *SCALES) if counts[dtype] == counts[torch.float32])
