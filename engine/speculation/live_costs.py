"""Corrects the timed costs by what rounds take while answers are written: a machine that was busy when they were timed
must not seem slow for as long as the program runs. Only what parts cost beside each other decides, so that it is found
on a machine that is busy all the time, too. Milliseconds come from whoever ran the rounds. Standard library only."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import replace
from itertools import pairwise
from statistics import median_low

from .costs import RoundCosts
from .trees import ROWS, WIDE_ROWS

ENDS = (1, 2, 4, 8, 12, ROWS, *WIDE_ROWS)
"""The most rows of each kind of pass; passes of one kind count as alike."""
COUNT = 3
"""How many of the latest rounds say what one costs: their median does, since other work slows some of them."""
CHECKS_SHARE, FIRST_CHECK_SHARE = 0.002, 0.1
"""The share of the time that checks may take, and the share for the first one, which comes sooner: the machine may have
been busy when costs were timed."""
CLEARLY = 0.7
"""The share of the timed cost below which a correction is made. Rounds that take more leave it as it is: similar tokens
choose the same experts, and a timer that ran three times is not exact."""
NEAR = 64
"""Of how many of the latest rounds is taken that the machine had one pace."""


class LiveCosts:
    """Corrects costs downwards only, against the pace of the machine now. Where all that was seen of late takes longer
    than was timed, it is busy; where one part takes so many times longer, the others were timed too slow beside it."""

    def __init__(self) -> None:
        self._draft: deque[float] = deque(maxlen=COUNT)
        """The latest drafts: the time that each took, divided by the timed cost."""
        self._passes = [deque[float](maxlen=COUNT) for _ in ENDS]
        """The latest passes of each kind (``ENDS``): the time that each took, divided by the timed cost."""
        self._medians = [1.0] * len(ENDS)
        self._seen_at = [-NEAR] * len(ENDS)
        """By kind of pass: the median of its latest ones, and the round that had the last."""
        self._rounds = 0
        self._shares = [1.0] * len(ENDS)
        """By kind of pass, the factor by which its timed cost is multiplied; 1 leaves it as it is."""
        self._draft_share = 1.0
        self._block = 0
        """Tokens of the longest draft. Costs were timed for blocks of that length only."""
        self._seen: set[int] = set()
        """The kinds of passes that the latest answer had."""
        self._milliseconds = 0.0
        """Milliseconds of the rounds since the latest check."""
        self._share = FIRST_CHECK_SHARE
        """The share of those milliseconds that the next check may take."""

    def begin(self, costs: RoundCosts) -> list[int]:
        """Begins an answer. Returns the row counts that a round of it each should have as a check, now and then: the
        narrowest and the widest, if the answer before had none, since their costs may have kept them away."""
        unseen = [rows for rows in (1, ROWS) if _kind(rows) not in self._seen]
        for kind, ratios in enumerate(self._passes):
            if kind not in self._seen and self._shares[kind] == 1:
                ratios.clear()  # the machine may have been as busy then as when costs were timed
        self._seen.clear()
        if self._milliseconds * self._share <= costs.rest + costs.round(ROWS - 1):
            return []
        self._milliseconds, self._share = 0.0, CHECKS_SHARE
        return unseen

    def observe(self, costs: RoundCosts, num_drafted: int, rows: int, draft_ms: float, verify_ms: float) -> None:
        """Learns what a round took, beside its timed ``costs``: ``num_drafted`` tokens in ``draft_ms`` (0 without a
        draft) and a pass over ``rows`` in ``verify_ms``."""
        kind = _kind(rows)
        self._rounds += 1
        self._milliseconds += draft_ms + verify_ms
        if rows <= len(costs.verify):
            self._passes[kind].append(verify_ms / costs.verify[rows - 1])
            self._seen_at[kind] = self._rounds
            self._seen.add(kind)
            self._medians[kind] = median_low(self._passes[kind])
        near = [each for each, at in enumerate(self._seen_at) if self._rounds - at < NEAR and self._passes[each]]
        pace = max([1.0, *(self._medians[each] for each in near if len(self._passes[each]) == COUNT)])
        for each in near:
            self._shares[each] = _share(self._medians[each], pace)
        self._block = max(self._block, num_drafted)
        timed = costs.draft + costs.step * num_drafted
        if num_drafted and timed and (costs.step or num_drafted == self._block):
            self._draft.append(draft_ms / timed)
            self._draft_share = _share(median_low(self._draft), pace)

    def corrected(self, costs: RoundCosts) -> RoundCosts:
        """The costs, corrected: parts that were seen to take clearly less cost what they took. Passes that were not
        seen cost no more than a wider pass, and, where one on either side was corrected, at most what interpolates
        linearly between the two. Ingesting and looking up cost no more than a draft."""
        passes, drafts = self._shares, self._draft_share
        if drafts == 1 and min(passes) == 1:
            return costs
        verify = [cost * passes[_kind(rows)] for rows, cost in enumerate(costs.verify, 1)]
        seen = [kind for kind, ratios in enumerate(self._passes) if ratios and ENDS[kind] <= len(verify)]
        for low, high in pairwise(seen):
            start, end = verify[ENDS[low] - 1], verify[ENDS[high] - 1]
            for rows in range(ENDS[low] + 1, ENDS[high - 1] + 1) if min(passes[low], passes[high]) < 1 else ():
                even = start + (end - start) * (rows - ENDS[low]) / (ENDS[high] - ENDS[low])
                verify[rows - 1] = min(verify[rows - 1], even)
        for width in reversed(range(len(verify) - 1)):
            verify[width] = min(verify[width], verify[width + 1])
        draft, step = drafts * costs.draft, drafts * costs.step
        most = draft + step * self._block if self._draft else max(costs.lookup, ROWS * costs.ingest)
        ingest, lookup = min(costs.ingest, most / ROWS), min(costs.lookup, most)
        return replace(costs, draft=draft, verify=tuple(verify), ingest=ingest, lookup=lookup, step=step)


def _kind(rows: int) -> int:
    return bisect_left(ENDS, rows)


def _share(ratio: float, pace: float) -> float:
    """``pace``: how many times as long as timed the dearest passes take now."""
    share = ratio / pace
    return share if share < CLEARLY else 1.0
