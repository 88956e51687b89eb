"""Steps of kernels that run without the host: captured as CUDA graphs, and their results read back behind them.

On a CPU, where Triton's interpreter runs the kernels, a step is simply called and a result simply copied.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch
from torch import Tensor

from ..errors import DeviceFailure, Option

Step = Callable[[], None]


def captured(step: Step, device: torch.device, what: str) -> Step:
    """The step as one replay. It runs twice here, so it must leave nothing behind when it is told to do nothing.

    Raises ``DeviceFailure`` when something in it waits for the host or allocates.
    """
    if device.type != "cuda":
        return step
    try:
        # Compiles what isn't compiled yet, which a capture wouldn't allow; in no stream of its own, after which every
        # launch of four graphs took 0.13 us more (kernels/DECISIONS.md).
        step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step()
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


class Flight:
    """A round on its way: what it will have written, once its copy on the host is complete."""

    def __init__(self, sent: int, size: int, device: torch.device, marks: int):
        """``sent`` fp32 numbers go out with it, ``size`` int32 come back."""
        self.stopwatch = Stopwatch(device, marks)
        pinned = device.type == "cuda"
        self._luggage = torch.zeros(sent, dtype=torch.float32, pin_memory=pinned)
        self._host = torch.zeros(size, dtype=torch.int32, pin_memory=pinned)

    def send(self, numbers: Tensor, to: Tensor) -> None:
        """Enqueues the copy of fp32 numbers [n], at most ``sent``, to the first places of ``to`` on the device.

        They stay here until the round has arrived.
        """
        luggage = self._luggage[: len(numbers)]
        luggage.copy_(numbers)
        to[: len(numbers)].copy_(luggage, non_blocking=True)

    def depart(self, record: Tensor) -> None:
        """Enqueues the copy of a record, int32 [size], behind what has been enqueued; the last mark follows it."""
        self._host.copy_(record, non_blocking=True)

    def arrived(self) -> Tensor:
        """Waits; the record, valid until the next ``depart``."""
        self.stopwatch.wait()
        return self._host
