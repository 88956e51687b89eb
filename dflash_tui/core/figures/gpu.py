"""The graphics card's utilisation, memory, power and energy, from NVIDIA's management library (``nvidia-ml-py``,
optional). Whatever can't be had is None; nothing raises."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

POLL_SECONDS = 0.5
Figure = TypeVar("Figure")


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One look at a card. None is what it doesn't tell."""

    name: str
    utilisation: float | None = None
    """Share of the last sample period in which a kernel ran, in [0, 1]."""
    memory_used: int | None = None
    memory_total: int | None = None
    """Bytes."""
    watts: float | None = None
    celsius: int | None = None
    joules: float | None = None
    """A counter that only grows, since some moment before the first reading."""


class GpuCard(Protocol):
    """Something that can be read; the tests have their own."""

    def read(self) -> GpuReading: ...


class EnergyIntegrator:
    """Joules from samples of the power, for cards without a counter: trapezoids between the samples."""

    def __init__(self) -> None:
        self.joules = 0.0
        self._before: tuple[float, float] | None = None

    def add(self, seconds: float, watts: float) -> None:
        """``seconds``: when ``watts`` was read, on a clock that doesn't go back."""
        if self._before is not None:
            then, power = self._before
            self.joules += (seconds - then) * (watts + power) / 2
        self._before = (seconds, watts)


class NvidiaCard:
    """A card as NVML shows it."""

    def __init__(self, library: Any, index: int = 0) -> None:
        """``library``: the module ``pynvml``, initialised. Raises its errors when there is no such card."""
        self._library = library
        self._handle = library.nvmlDeviceGetHandleByIndex(index)
        name = library.nvmlDeviceGetName(self._handle)
        self._name = name.decode() if isinstance(name, bytes) else str(name)
        self._integrator = EnergyIntegrator()

    def read(self) -> GpuReading:
        ask = self._library
        memory = self._ask(ask.nvmlDeviceGetMemoryInfo)
        rates = self._ask(ask.nvmlDeviceGetUtilizationRates)
        milliwatts = self._ask(ask.nvmlDeviceGetPowerUsage)
        watts = None if milliwatts is None else milliwatts / 1e3
        return GpuReading(
            self._name,
            utilisation=None if rates is None else rates.gpu / 100,
            memory_used=None if memory is None else memory.used,
            memory_total=None if memory is None else memory.total,
            watts=watts,
            celsius=self._ask(lambda card: ask.nvmlDeviceGetTemperature(card, ask.NVML_TEMPERATURE_GPU)),
            joules=self._joules(watts),
        )

    def _joules(self, watts: float | None) -> float | None:
        counted = self._ask(self._library.nvmlDeviceGetTotalEnergyConsumption)
        if counted is not None:
            return float(counted) / 1e3
        if watts is None:
            return None
        self._integrator.add(time.monotonic(), watts)
        return self._integrator.joules

    def _ask(self, question: Callable[[Any], Figure]) -> Figure | None:
        """What the card answers to a function of the library; None where it can't."""
        try:
            return question(self._handle)
        except self._library.NVMLError:
            return None


def find_card() -> GpuCard | None:
    """The first card, or None. Takes some ten milliseconds, so it belongs into a thread."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return NvidiaCard(pynvml, _first_visible())
    except Exception:
        # ImportError without the extra, NVMLError in many shapes without a driver: no card either way.
        return None


def _first_visible() -> int:
    """The card that CUDA calls 0, where the environment chooses by number."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() else 0


class GpuMonitor:
    """Reads a card twice a second on its own thread. ``latest`` is None before, and without a card."""

    def __init__(self, find: Callable[[], GpuCard | None] = find_card, seconds: float = POLL_SECONDS) -> None:
        self.latest: GpuReading | None = None
        self._find = find
        self._seconds = seconds
        self._card: GpuCard | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="gpu", daemon=True)

    def start(self) -> None:
        """Start the thread; further calls do nothing."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """Returns at once; the thread ends with its reading."""
        self._ended.set()

    def joules(self) -> float | None:
        """The energy counter now, for the difference of two calls; None where there is none."""
        card = self._card
        return None if card is None else self._read(card).joules

    def _run(self) -> None:
        with suppress(Exception):  # a card that went away: the last reading would be a lie
            self._card = self._find()
            while self._card is not None and not self._ended.wait(self._seconds):
                self.latest = self._read(self._card)
        self._card = self.latest = None

    def _read(self, card: GpuCard) -> GpuReading:
        with self._lock:  # summing up the power needs one reader at a time
            return card.read()
