"""Profiles a round or a prompt: the time of each kernel by name, and how long the device waits between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from .measure import Bench
from .report import table

STEADY_SHARE = 0.6
"""The last share of the recording, which is used: it is past the prompt and the first rounds."""
FIRST_KERNEL = "_begin"
"""The first kernel of every graph with which a round may start."""
MOST_LINES = 40
NAME_WIDTH = 60


class KernelRun(NamedTuple):
    """One kernel's run, in microseconds."""

    name: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class KernelTime:
    name: str
    calls: float
    """Launches per round."""
    microseconds: float
    """Microseconds per round."""


@dataclass(frozen=True, slots=True)
class RoundProfile:
    """The profile of a steady round, or of a prompt. While two kernels run side by side, both have the time in
    ``kernels``; ``idle_share`` counts when none ran. Shares are of 1."""

    width: int
    """Rows of a pass, or of the whole prompt."""
    round_ms: float
    idle_share: float
    """The share of the time in which nothing ran."""
    between_share: float
    """The share of the time between the last kernel of a round and the first of the next, copies included."""
    kernels: tuple[KernelTime, ...]

    def describe(self) -> str:
        heads = ("us per pass", "calls", "share", "kernel")
        total = sum(each.microseconds for each in self.kernels) or 1.0
        rows = [
            [
                f"{each.microseconds:.1f}",
                f"{each.calls:.1f}",
                f"{100 * each.microseconds / total:.1f}%",
                each.name[:NAME_WIDTH].ljust(NAME_WIDTH),
            ]
            for each in self.kernels[:MOST_LINES]
        ]
        what = f"\n{self.width} rows: {self.round_ms:.3f} ms per pass while recorded,"
        what += f" idle {self.idle_share:.1%}, of it between rounds {self.between_share:.2%} of the time"
        return f"{what}\n{table(heads, rows)}"


def profile_rounds(bench: Bench, width: int, context: int, count: int) -> RoundProfile:
    """Records rounds with the routing in force. Recording slows the host: take times from rounds without it."""
    timed: list[float] = []

    def run() -> None:
        seconds, rounds = bench.run(width, context, count)
        timed.append(1e3 * seconds / len(rounds))

    spans = _record(run, bench.decoder.device)
    return summarise(*steady(spans), width, timed[0])


def profile_prompt(bench: Bench, rows: int) -> RoundProfile:
    """Records a prompt from empty caches, and the first token; it must have run before."""
    bench.force("uniform", rows)
    spans = _record(lambda: bench.prefill_once(rows), bench.decoder.device)
    length = max(span.end for span in spans) - min(span.start for span in spans)
    return summarise(spans, length, rows, length / 1e3)


def _record(run: Callable[[], object], device: torch.device) -> list[KernelRun]:
    """The kernels that run on the device during ``run``; on a CPU, the outermost operations."""
    on_gpu = device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities) as recording:
        run()
        if on_gpu:
            torch.cuda.synchronize()
    wanted = DeviceType.CUDA if on_gpu else DeviceType.CPU
    return [
        KernelRun(event.name, event.time_range.start, event.time_range.end)
        for event in recording.events() or ()
        if event.device_type == wanted and (on_gpu or event.cpu_parent is None)
    ]


def summarise(spans: Sequence[KernelRun], length: float, width: int, round_ms: float) -> RoundProfile:
    """The profile of these spans, of ``length`` microseconds together, for each pass of ``round_ms``."""
    rounds = length / (1e3 * round_ms)
    times: dict[str, list[float]] = defaultdict(list)
    for span in spans:
        times[span.name].append(span.end - span.start)
    kernels = [KernelTime(name, len(each) / rounds, sum(each) / rounds) for name, each in times.items()]
    kernels.sort(key=lambda each: -each.microseconds)
    return RoundProfile(width, round_ms, 1 - _covered(spans) / length, _between(spans) / length, tuple(kernels))


def steady(spans: Sequence[KernelRun]) -> tuple[list[KernelRun], float]:
    """The spans of the last part of the recording, and its length in microseconds."""
    first, last = min(span.start for span in spans), max(span.end for span in spans)
    begin = last - STEADY_SHARE * (last - first)
    return [span for span in spans if span.start >= begin], last - begin


def _covered(spans: Sequence[KernelRun]) -> float:
    """Microseconds in which at least one of the spans runs."""
    covered, reached = 0.0, float("-inf")
    for span in sorted(spans, key=lambda each: each.start):
        covered += max(0.0, span.end - max(span.start, reached))
        reached = max(reached, span.end)
    return covered


def _between(spans: Sequence[KernelRun]) -> float:
    """Microseconds before the rounds' first kernels in which no kernel ran; the copies of records are no kernels."""
    idle, reached = 0.0, float("inf")
    for span in sorted((span for span in spans if not span.name.startswith("Mem")), key=lambda each: each.start):
        if span.name == FIRST_KERNEL:
            idle += max(0.0, span.start - reached)
        reached = span.end if reached == float("inf") else max(reached, span.end)
    return idle
