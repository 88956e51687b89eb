"""What the gauges showed after any round of a turn: sums at that step, so that scrubbing costs the same everywhere."""

from __future__ import annotations

from .reducer import TurnState
from .statistics import Rate, TurnSnapshot
from .traces.numbers import SECOND


def snapshot_at(turn: TurnState, index: int) -> TurnSnapshot:
    """The turn as it stood after step ``index``. Raises ``IndexError`` when the step isn't there."""
    history = turn.history
    index = range(len(history))[index]
    return TurnSnapshot(
        step=index,
        num_tokens=history.emitted_sum[index],
        ttft_ms=history.time[0] / 1e3,
        rate=_rate(turn, index),
        acceptance=history.acceptance(index),
        cost=history.cost(index),
        context_length=history.context_length[index],
        finished=turn.reason is not None and index == len(history) - 1,
    )


def _rate(turn: TurnState, index: int) -> Rate:
    history, meter = turn.history, turn.rate
    seconds = (history.time[index] - history.time[0]) / SECOND
    tokens = history.emitted_sum[index] - history.emitted_sum[0]
    mean = tokens / seconds if seconds > 0 else 0.0
    return Rate(history.rate(index), mean, max(meter.peak_after(index), mean), meter.history_after(index))
