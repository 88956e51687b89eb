"""What the gauges showed after any round of a turn: sums at that step, so that scrubbing costs the same everywhere."""

from __future__ import annotations

from ..conversation.reducer import TurnState
from .statistics import TurnSnapshot


def snapshot_at(turn: TurnState, index: int) -> TurnSnapshot:
    """The turn as it stood after step ``index``. Raises ``IndexError`` when the step isn't there."""
    history = turn.history
    index = range(len(history))[index]
    return TurnSnapshot(
        step=index,
        num_tokens=history.emitted_sum[index],
        ttft_ms=history.time[0] / 1e3,
        rate=turn.rate.after(index),
        acceptance=history.acceptance(index),
        cost=history.cost(index),
        context_length=history.context_length[index],
        finished=turn.reason is not None and index == len(history) - 1,
    )
