"""An index of a text's tokens that finds where its newest ones stood before, in microseconds a token on the host."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..events import Match
from ..speculation.lookup import LONGEST, SHORTEST

UNSORTED = 2048
"""How many of the newest tokens are searched one by one, before they are sorted in among the others."""
ID_BITS = 21
"""Bits of a token's id; three ids fill a key."""


class TextIndex:
    """Indexes a text that grows by tokens. Places are sorted by the tokens that end there, so that those which end with
    the newest ones lie together."""

    def __init__(self, ids: Iterable[int] = ()) -> None:
        self._ids = np.fromiter(ids, np.int64)
        self._length = len(self._ids)
        self._keys = np.empty(0, np.int64)
        """The keys of all sorted places, ascending."""
        self._ends = np.empty(0, np.int64)
        """The sorted places: where the last token of each key stands. Those of equal keys ascend."""
        self._sorted = 0
        """How many tokens are sorted in."""

    def __len__(self) -> int:
        return self._length

    @property
    def ids(self) -> NDArray[np.int64]:
        """The ids of the text: a view, valid until the text grows."""
        return self._ids[: self._length]

    def extend(self, ids: Sequence[int]) -> None:
        """Appends tokens to the text."""
        length = self._length + len(ids)
        if length > len(self._ids):
            self._ids = np.concatenate((self.ids, np.empty(max(length, 1024), np.int64)))
        self._ids[self._length : length] = ids
        self._length = length

    def find(self) -> Match | None:
        """Where the text's newest tokens stood before, None if nowhere: ``lookup.longest_match`` of it."""
        if self._length <= SHORTEST:
            return None
        if self._length - self._sorted > UNSORTED:
            self._sort()
        newest, recent, older = self._length - 1, self._recent(), self._older()
        if not len(recent) and not len(older):
            return None
        # Most often the latest place matches as far as any can, or is the only one: then no other need be looked at.
        latest = int(recent[-1] if len(recent) else older[-1])
        if len(recent) + len(older) == 1 or self._same(latest) == LONGEST:
            return Match(self._same(latest), newest - latest)
        return self._longest(np.concatenate((older, recent)))

    def guess(self, match: Match, count: int, stops: Collection[int] = ()) -> list[int]:
        """Up to ``count`` tokens that followed at the match ``match``, up to the first of ``stops``:
        ``lookup.continuation`` of the text."""
        start = self._length - match.distance
        period = self.ids[start : start + count].tolist()
        guess = [period[index % match.distance] for index in range(count)]
        return next((guess[: index + 1] for index, token in enumerate(guess) if token in stops), guess)

    def _longest(self, ends: NDArray[np.int64]) -> Match:
        """The longest match among ``ends``: places, ascending, whose last ``SHORTEST`` tokens equal the text's."""
        ids, newest, length = self.ids, self._length - 1, SHORTEST
        while length < LONGEST:
            further = ends[ends >= length]
            further = further[ids[further - length] == ids[newest - length]]
            if not len(further):
                break
            ends, length = further, length + 1
        return Match(length, newest - int(ends[-1]))

    def _same(self, end: int) -> int:
        """How many tokens up to the place ``end`` equal the text's newest ones, at most ``LONGEST``."""
        longest = min(LONGEST, end + 1)
        differs = self.ids[end - longest + 1 : end + 1] != self.ids[self._length - longest :]
        return int(differs[::-1].argmax()) if differs.any() else longest

    def _recent(self) -> NDArray[np.int64]:
        """The unsorted places that end with the same ``SHORTEST`` tokens as the text, ascending."""
        ids, newest = self.ids, self._length - 1
        first = max(self._sorted, SHORTEST - 1)
        ends = np.flatnonzero(ids[first:newest] == ids[newest]) + first
        for back in range(1, SHORTEST):
            ends = ends[ids[ends - back] == ids[newest - back]]
        return ends

    def _older(self) -> NDArray[np.int64]:
        """The sorted places that end with the same ``SHORTEST`` tokens as the text, ascending."""
        key = _keys(self.ids[self._length - SHORTEST :])[0]
        return self._ends[np.searchsorted(self._keys, key) : np.searchsorted(self._keys, key, side="right")]

    def _sort(self) -> None:
        """Sorts all tokens in but the newest, whose own place must not be found."""
        first, last = max(self._sorted, SHORTEST - 1), self._length - 1
        keys = _keys(self.ids[first - SHORTEST + 1 : last])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        places = np.searchsorted(self._keys, keys, side="right")
        self._keys = np.insert(self._keys, places, keys)
        self._ends = np.insert(self._ends, places, order + first)
        self._sorted = last


def _keys(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """A key for each ``SHORTEST`` neighbours: their ids in one number."""
    keys = ids[: len(ids) - SHORTEST + 1].copy()
    for index in range(1, SHORTEST):
        keys = keys << ID_BITS | ids[index : len(ids) - SHORTEST + 1 + index]
    return keys
