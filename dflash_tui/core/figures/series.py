"""Figures of which more and more come, for whoever draws them at every frame: no copies, and no sum is made twice."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise

from engine.rounds.lazy_sequence import LazySequence


class Series:
    """Figures and the sums up to each of them. Append-only."""

    def __init__(self) -> None:
        self._values, self._sums = array("d"), array("d", (0.0,))

    def append(self, value: float) -> None:
        self._values.append(value)
        self._sums.append(self._sums[-1] + value)

    def __len__(self) -> int:
        return len(self._values)

    def first(self, count: int) -> Beginning:
        return Beginning(self._values, self._sums, count)


class Beginning(LazySequence[float]):
    """The first values of a series, whatever comes behind them."""

    __slots__ = ("_count", "_sums", "_values")

    def __init__(self, values: Sequence[float] = (), sums: Sequence[float] = (0.0,), count: int = 0) -> None:
        """``sums`` holds as entry k the sum of the first k values."""
        self._values, self._sums, self._count = values, sums, count

    def __len__(self) -> int:
        return self._count

    def item_at(self, index: int) -> float:
        return self._values[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Beginning):
            return NotImplemented
        if self._values is other._values or self._count != other._count:
            return self._count == other._count
        return self._values[: self._count] == other._values[: self._count]

    __hash__ = None  # type: ignore[assignment]  # as lists have none

    def resampled(self, count: int) -> list[float]:
        """The series as at most ``count`` values, which are means of neighbours when there are more."""
        if self._count <= count:
            return list(self)
        edges = [self._count * index // count for index in range(count + 1)]
        return [(self._sums[end] - self._sums[start]) / (end - start) for start, end in pairwise(edges)]
