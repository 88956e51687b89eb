"""The graphics card's utilisation, memory and power, from NVIDIA's management library (``nvidia-ml-py``,
optional). Whatever can't be had is None; nothing raises."""

from __future__ import annotations

import os
import threading
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


class GpuCard(Protocol):
    """Something that can be read; the tests have their own."""

    def read(self) -> GpuReading: ...


class NvidiaCard:
    """A card as NVML shows it."""

    def __init__(self, library: Any, index: int = 0) -> None:
        """``library``: the module ``pynvml``, initialised. Raises its errors when there is no such card."""
        self._library = library
        self._handle = library.nvmlDeviceGetHandleByIndex(index)
        name = library.nvmlDeviceGetName(self._handle)
        self._name = name.decode() if isinstance(name, bytes) else str(name)

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
        )

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
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu", daemon=True)

    def start(self) -> None:
        """Start the thread; further calls do nothing."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """Returns at once; the thread ends with its reading."""
        self._ended.set()

    def _run(self) -> None:
        with suppress(Exception):  # a card that went away: the last reading would be a lie
            card = self._find()
            while card is not None and not self._ended.wait(self._seconds):
                self.latest = card.read()
        self.latest = None
