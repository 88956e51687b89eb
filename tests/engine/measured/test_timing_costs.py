"""What a round is taken to cost, on a machine that others use too."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from engine.measured.costs import REPEATS, _quickest


def test_a_busy_moment_makes_nothing_dear() -> None:
    """A load that lasts for half a turn slows whatever is timed then, and the first runs are slow by themselves."""
    calls, num_works = count(), 8

    def timer(milliseconds: float) -> Callable[[], float]:
        def time() -> float:
            call = next(calls)
            first, busy = call < num_works, (num_works + 2) <= call < (num_works + 6)
            return milliseconds * (3 if first or busy else 1)

        return time

    works = [timer(1.0 + number) for number in range(num_works)]
    assert _quickest(works) == [1.0 + number for number in range(num_works)]
    assert next(calls) == num_works * (REPEATS + 1)
