"""What rounds take while answers are written, against what was timed at the start: a machine that was busy then must
not seem slow for as long as the program runs. Milliseconds come from whoever ran the rounds. Standard library only."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median_low

from .costs import RoundCosts
from .trees import ROWS, WIDE_ROWS

ENDS = (1, 2, 4, 8, 12, ROWS, *WIDE_ROWS)
"""Rows up to which passes count as alike."""
COUNT = 3
"""Rounds that say what one costs: the middle one, since other work slows some of them."""
CHECKS_SHARE, FIRST_CHECK_SHARE = 0.002, 0.1
"""Of the time goes into checks, at most, and into the first one, which comes sooner: the machine may have been busy
when costs were timed."""
CLEARLY = 0.7
"""Of what was timed. Rounds that take more than this leave it as it is: alike tokens choose the same experts, and a
timer that ran three times is not exact."""


class LiveCosts:
    """Corrects costs downwards. Rounds that take longer than was timed say that the machine is busy now."""

    def __init__(self) -> None:
        self._draft: deque[float] = deque(maxlen=COUNT)
        """Of the latest drafts: what each took, of what was timed."""
        self._passes = [deque[float](maxlen=COUNT) for _ in ENDS]
        """The same of passes, by their rows."""
        self._shares = [1.0] * len(ENDS)
        """What they are taken to cost, of what was timed."""
        self._draft_share = 1.0
        self._block = 0
        """Tokens of the longest draft: only such were timed."""
        self._seen: set[int] = set()
        """Kinds of passes that the latest answer had."""
        self._milliseconds = 0.0
        """Of rounds since the latest check."""
        self._share = FIRST_CHECK_SHARE
        """Of these that the next one may take."""

    def begin(self, costs: RoundCosts) -> list[int]:
        """A new answer. Rows of passes that one round of it each should have, now and then: of the narrowest and the
        widest, if the answer before had none, since costs may have kept them away."""
        unseen = [rows for rows in (1, ROWS) if _kind(rows) not in self._seen]
        for kind, ratios in enumerate(self._passes):
            if kind not in self._seen and self._shares[kind] == 1:
                ratios.clear()  # the machine may have been as busy then as when it was timed
        self._seen.clear()
        if self._milliseconds * self._share <= costs.rest + costs.round(ROWS - 1):
            return []
        self._milliseconds, self._share = 0.0, CHECKS_SHARE
        return unseen

    def observe(self, costs: RoundCosts, num_drafted: int, rows: int, draft_ms: float, verify_ms: float) -> None:
        """A round at these timed costs: so many tokens drafted, 0 without a draft, and so many rows verified."""
        kind = _kind(rows)
        self._milliseconds += draft_ms + verify_ms
        if rows <= len(costs.verify):
            self._passes[kind].append(verify_ms / costs.verify[rows - 1])
            self._shares[kind] = _share(self._passes[kind])
            self._seen.add(kind)
        self._block = max(self._block, num_drafted)
        timed = costs.draft + costs.step * num_drafted
        if num_drafted and timed and (costs.step or num_drafted == self._block):
            self._draft.append(draft_ms / timed)
            self._draft_share = _share(self._draft)

    def corrected(self, costs: RoundCosts) -> RoundCosts:
        """What parts of rounds cost that were seen to take clearly less than this. The others: no more than a wider
        pass, or than a draft, takes; where a wider one costs less, evenly more than a narrower one that was seen."""
        passes, drafts = self._shares, self._draft_share
        if drafts == 1 and min(passes) == 1:
            return costs
        verify = [cost * passes[_kind(rows)] for rows, cost in enumerate(costs.verify, 1)]
        seen = [kind for kind, ratios in enumerate(self._passes) if ratios and ENDS[kind] <= len(verify)]
        for low, high in pairwise(seen):
            start, end = verify[ENDS[low] - 1], verify[ENDS[high] - 1]
            for rows in range(ENDS[low] + 1, ENDS[high - 1] + 1) if passes[high] < 1 else ():
                even = start + (end - start) * (rows - ENDS[low]) / (ENDS[high] - ENDS[low])
                verify[rows - 1] = min(verify[rows - 1], even)
        for place in reversed(range(len(verify) - 1)):
            verify[place] = min(verify[place], verify[place + 1])
        draft, step = drafts * costs.draft, drafts * costs.step
        most = draft + step * self._block if self._draft else max(costs.lookup, ROWS * costs.ingest)
        ingest, lookup = min(costs.ingest, most / ROWS), min(costs.lookup, most)
        return replace(costs, draft=draft, verify=tuple(verify), ingest=ingest, lookup=lookup, step=step)


def _kind(rows: int) -> int:
    return bisect_left(ENDS, rows)


def _share(ratios: Sequence[float]) -> float:
    found = median_low(ratios)
    return found if found < CLEARLY else 1.0
