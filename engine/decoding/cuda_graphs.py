"""Captures kernel launches as CUDA graphs, and sends numbers out with them. On a CPU a launch is simply called."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch
from torch import Tensor

from ..errors import DeviceFailure, Option

Launch = Callable[[], None]
"""Launches kernels one behind the other, captured as a graph or not."""


def captured(launch: Launch, device: torch.device, what: str) -> Launch:
    """Captures a launch as a graph and returns what replays it; on a CPU, the launch itself. Capturing runs the launch
    twice. Raises ``DeviceFailure`` when the launch waits for the device or allocates memory; ``what`` names it
    there."""
    if device.type != "cuda":
        return launch
    try:
        # Compiles what isn't compiled yet, which a capture wouldn't allow; in no stream of its own, after which every
        # launch of four graphs took 0.13 us more (kernels/toolchain/DECISIONS.md).
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


class Stopwatch:
    """Marks moments in the GPU's own time; on a CPU, in the host's."""

    def __init__(self, device: torch.device, count: int):
        marks = range(count if device.type == "cuda" else 0)
        self._events = [torch.cuda.Event(enable_timing=True) for _ in marks]  # type: ignore[no-untyped-call]
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
        """The time between two marks that have passed."""
        if self._events:
            return float(self._events[begin].elapsed_time(self._events[end]))
        return (self._moments[end] - self._moments[begin]) * 1e3


class Outbox:
    """Host memory from which numbers are copied to the device without waiting."""

    def __init__(self, count: int, device: torch.device):
        """``count``: how many fp32 numbers one copy holds."""
        self._numbers = torch.zeros(count, dtype=torch.float32, pin_memory=device.type == "cuda")

    def send(self, numbers: Tensor, to: Tensor) -> None:
        """Enqueues the copy of ``numbers`` [count] to ``to`` on the device. The outbox is in use until that copy is
        done: nothing else may be sent before."""
        self._numbers.copy_(numbers)
        to.copy_(self._numbers, non_blocking=True)
