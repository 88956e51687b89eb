"""The card's figures, from a library that the test plays."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from dflash_tui.core.figures.gpu import GpuCard, GpuMonitor, GpuReading, NvidiaCard
from tests.surroundings import threads


class NvmlError(Exception):
    pass


class Library:
    """As much of pynvml as is asked; ``silent`` names the questions that the card doesn't answer."""

    NVMLError = NvmlError
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *silent: str) -> None:
        self._silent = silent

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return b"NVIDIA H200"

    def __getattr__(self, name: str) -> Any:
        answers = {
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=72 * 10**9, total=141 * 10**9),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=79),
            "nvmlDeviceGetPowerUsage": 486_000,
            "nvmlDeviceGetTemperature": 61,
            "nvmlDeviceGetTotalEnergyConsumption": 5_000_500,
        }
        if name not in answers:
            raise AttributeError(name)

        def answer(*_: object) -> object:
            if name in self._silent:
                raise NvmlError(name)
            return answers[name]

        return answer


def test_a_card_is_read() -> None:
    reading = NvidiaCard(Library()).read()
    assert reading == GpuReading("NVIDIA H200", 0.79, 72 * 10**9, 141 * 10**9, 486.0, 61)


def until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_the_monitor_reads_until_it_is_stopped() -> None:
    lock = threading.Event()

    class Steady:
        def read(self) -> GpuReading:
            lock.set()
            return GpuReading("card")

    before = threads("gpu")
    monitor = GpuMonitor(Steady, seconds=0.005)
    monitor.start()
    assert lock.wait(60)
    until(lambda: monitor.latest is not None)
    monitor.stop()
    until(lambda: threads("gpu") <= before)


@pytest.mark.parametrize("failure", [None, ImportError("no extra")])
def test_without_a_card_nothing_is_said(failure: Exception | None) -> None:
    def find() -> GpuCard | None:
        if failure is not None:
            raise failure
        return None

    before = threads("gpu")
    monitor = GpuMonitor(find, seconds=0.001)
    monitor.start()
    until(lambda: threads("gpu") <= before)
    assert monitor.latest is None
