"""Times the pieces of rounds on the device that runs them."""

from __future__ import annotations

from collections.abc import Sequence

from ..decoding.cuda_graphs import Launch, Stopwatch
from ..decoding.round_launches import Kind, RoundLaunches
from ..kernels.toolchain.jit import MAX_ROWS
from ..speculation.trees import best_first, in_rows

TYPICAL_CHANCES = ((0.6, 0.15, 0.08, 0.05),) * (MAX_ROWS - 1)
"""What a drafter gives its choices where a tree pays: trees of it are timed."""


class RoundTimer:
    """The conversation in the caches is forgotten."""

    def __init__(self, launches: RoundLaunches):
        self.launches = launches
        self._stopwatch = Stopwatch(launches.device, 2)

    def time(self, kind: Kind, text: Sequence[int], context: int, width: int = 1, pending: int = 0) -> float:
        """Milliseconds of a piece of a greedy round behind ``context`` positions: verify the first ``width`` of 16
        tokens, or a typical tree, or ingest ``pending`` rows."""
        launch = self.launches.of(kind, greedy=True)
        self.launches.pose(text, context, width, pending)
        if self.launches.tree is not None:
            self.launches.tree.pose(in_rows(best_first(TYPICAL_CHANCES, width)))
        return self.milliseconds(launch)

    def milliseconds(self, launch: Launch) -> float:
        """Of one run of a launch where the device was posed; it must have been captured before."""
        done = self.launches.state.done
        done.zero_()
        self._stopwatch.mark(0)
        launch()
        self._stopwatch.mark(1)
        self._stopwatch.wait()
        done.fill_(1)
        return self._stopwatch.milliseconds(0, 1)
