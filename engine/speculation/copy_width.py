"""Decides how many rows a pass over a looked up chain may have: a copy that goes on and on doubles them. Standard
library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from .costs import RoundCosts
from .trees import ROWS, WIDE_ROWS

MOST_PATIENCE = 16
"""The most rounds of a copy that must come before a wide one, where wide ones do not pay."""


@dataclass(slots=True)
class CopyWidth:
    """Follows a copy of earlier text through one answer."""

    most_rows: int = ROWS
    """The most rows of the next pass over a looked up chain."""
    _saturated: int = 0
    """How many rounds in a row were looked up and kept whole."""
    _patience: int = 1
    """How many such rounds must come before a wide one."""

    def observe(self, rows: int, num_kept: int, looked_up: bool) -> None:
        """Learns of a round of ``rows`` rows that kept ``num_kept`` drafts; ``looked_up``: whether these were a looked
        up chain. Wide rounds begin after ``_patience`` rounds that kept all: more of them where a wide round kept no
        more than a narrow one could have."""
        self._saturated = self._saturated + 1 if looked_up and num_kept + 1 == rows else 0
        if rows > ROWS:
            self._patience = max(self._patience // 2, 1) if num_kept >= ROWS else min(2 * self._patience, MOST_PATIENCE)
        goes_on = self._saturated >= self._patience
        self.most_rows = min(max(2 * rows, ROWS), WIDE_ROWS[-1]) if goes_on else ROWS


def rows_of_copy(chances: Sequence[float], costs: RoundCosts) -> int:
    """How many rows to give a pass over a looked up chain: those that yield most in a millisecond. (By a fixed price,
    that of plain decoding or of drafts, a copy would pay for rows that cost more than its other ones.) ``chances``: of
    each token that may be verified, once it is reached."""
    tokens = list(accumulate(accumulate(chances, mul), initial=1.0))
    fitting = (rows for rows in (ROWS, *WIDE_ROWS) if rows <= len(tokens))
    return max(fitting, key=lambda rows: tokens[rows - 1] / (costs.lookup + costs.verify[rows - 1]), default=ROWS)
