"""Kernel launches captured as CUDA graphs, with results read back behind them. On a CPU a launch is simply called."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch
from torch import Tensor

from ..errors import DeviceFailure, Option

Launch = Callable[[], None]
"""Kernels one behind the other, captured or not."""


def captured(launch: Launch, device: torch.device, what: str) -> Launch:
    """The launch as one replay; runs twice here. ``DeviceFailure`` when it waits or allocates."""
    if device.type != "cuda":
        return launch
    try:
        # Compiles what isn't compiled yet, which a capture wouldn't allow; in no stream of its own, after which every
        # launch of four graphs took 0.13 us more (kernels/DECISIONS.md).
        launch()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            launch()
    except RuntimeError as error:
        raise DeviceFailure(
            f"The GPU could not record a decoding step ({what}): {error}",
            ("Decode without graphs: ", Option("attention_backend", "sdpa"), "."),
        ) from error
    return graph.replay


def _timed_event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


class Stopwatch:
    """Moments in the GPU's own time; on a CPU, in the host's."""

    def __init__(self, device: torch.device, count: int):
        on_gpu = device.type == "cuda"
        self._events = [_timed_event() for _ in range(count if on_gpu else 0)]
        self._moments = [0.0] * count

    def mark(self, index: int) -> None:
        """Notes the moment at which everything enqueued so far is done."""
        if self._events:
            self._events[index].record()
        else:
            self._moments[index] = perf_counter()

    def wait(self) -> None:
        """Blocks until the last mark has passed."""
        if self._events:
            self._events[-1].synchronize()

    def milliseconds(self, begin: int, end: int) -> float:
        """Between two marks that have passed."""
        if self._events:
            return float(self._events[begin].elapsed_time(self._events[end]))
        return (self._moments[end] - self._moments[begin]) * 1e3


class Readback:
    """The record of a round on its way to the host, and the numbers that went out with the round."""

    def __init__(self, sent: int, size: int, device: torch.device, marks: int):
        """``sent`` fp32 numbers go out with it, ``size`` int32 come back."""
        self.stopwatch = Stopwatch(device, marks)
        pinned = device.type == "cuda"
        self._sent = torch.zeros(sent, dtype=torch.float32, pin_memory=pinned)
        self._record = torch.zeros(size, dtype=torch.int32, pin_memory=pinned)

    def send(self, numbers: Tensor, to: Tensor) -> None:
        """Enqueues the copy of fp32 numbers [sent] to ``to`` on the device. They stay here until the round is read."""
        self._sent.copy_(numbers)
        to.copy_(self._sent, non_blocking=True)

    def enqueue(self, record: Tensor) -> None:
        """Enqueues the copy of a record, int32 [size], behind what has been enqueued; the last mark follows it."""
        self._record.copy_(record, non_blocking=True)

    def wait(self) -> Tensor:
        """The record, once it is complete; valid until the next ``enqueue``."""
        self.stopwatch.wait()
        return self._record
