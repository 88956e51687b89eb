"""Times launches: on a GPU by events in its stream, replayed from a graph, so that the host's time doesn't count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice, pairwise
from statistics import median
from time import perf_counter

import torch

REPLAYS = 12
LAUNCHES = 24
"""Launches in a graph, whose own start costs a few microseconds."""
GRAPH_MILLISECONDS = 20.0
"""The most milliseconds of one graph, unless one launch for each copy of the weights takes longer."""


def time_calls(work: Callable[[], object], repeats: int, device: torch.device) -> list[float]:
    if device.type == "cuda":
        return _time_on_gpu(work, repeats)
    times = []
    for _ in range(repeats):
        started = perf_counter()
        work()
        times.append((perf_counter() - started) * 1e3)
    return times


def time_launches(launches: Sequence[Callable[[], object]], device: torch.device, replays: int = REPLAYS) -> float:
    """Microseconds of one launch, the median of a few runs over all of them. They have different weights, so that no
    cache holds those."""
    launches[0]()  # compiles it here if it wasn't before
    (once,) = time_calls(launches[-1], 1, device)
    if device.type != "cuda":
        return once * 1e3
    count = max(len(launches), min(LAUNCHES, int(GRAPH_MILLISECONDS / once)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for launch in islice(cycle(launches), count):
            launch()
    graph.replay()
    return median(time_calls(graph.replay, replays, device)) / count * 1e3


def _time_on_gpu(work: Callable[[], object], repeats: int) -> list[float]:
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]  # type: ignore[no-untyped-call]
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) for before, after in pairwise(marks)]
