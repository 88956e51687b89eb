"""Pearson's chi-square test, so that the tests need no statistics package."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def chi_square_p(observed: Sequence[int], expected: Sequence[float], smallest_cell: float = 5.0) -> float:
    """Probability of a deviation at least this large by chance. Cells expected less than ``smallest_cell`` times are
    pooled; an observation where nothing was expected makes it 0."""
    if any(count and not share for count, share in zip(observed, expected, strict=True)):
        return 0.0
    cells = [(o, e) for o, e in zip(observed, expected, strict=True) if e >= smallest_cell]
    rare = [(o, e) for o, e in zip(observed, expected, strict=True) if e < smallest_cell]
    pooled = (sum(o for o, _ in rare), sum(e for _, e in rare))
    if pooled[1] >= 1:
        cells.append(pooled)
    statistic = sum((o - e) ** 2 / e for o, e in cells)
    half_freedom = torch.tensor((len(cells) - 1) / 2, dtype=torch.float64)
    # The survival function of chi-square is the regularised upper incomplete gamma function.
    return torch.special.gammaincc(half_freedom, torch.tensor(statistic / 2, dtype=torch.float64)).item()
