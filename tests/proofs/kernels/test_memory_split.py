"""Kernels of a round's line ask for one split of a multiprocessor's memory, whenever they are loaded."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

from engine import kernels
from engine.kernels.toolchain.card import HOPPER
from engine.kernels.toolchain.early_launch import in_line
from engine.kernels.toolchain.memory_split import EVERYTHING, MemorySplit


class Driver:
    """What each kernel asked for last."""

    def __init__(self) -> None:
        self.percent: dict[int, int] = {}
        self.asked = 0

    def __call__(self, function: int, percent: int) -> int:
        self.percent[function] = percent
        self.asked += 1
        return 0


def test_a_line_asks_for_one_split_and_prompts_for_all() -> None:
    driver = Driver()
    split = MemorySplit(driver)
    split.loaded(1, "_project", True)
    split.loaded(2, "_multiply_many", False)
    split.share(132, HOPPER)
    split.loaded(3, "_head", True)
    split.loaded(4, "_attend_chunk", False)
    assert driver.percent == {1: 58, 2: EVERYTHING, 3: 58, 4: EVERYTHING}


def test_a_driver_that_refuses_costs_no_kernel(caplog: pytest.LogCaptureFixture) -> None:
    split = MemorySplit(lambda _function, _percent: 1)
    split.loaded(1, "_project", True)
    assert "_project keeps its own split" in caplog.text


def test_kernels_of_prompts_have_names_of_their_own() -> None:
    """By which a loaded kernel is known to stand in a line, or not."""
    for module in walk_packages(kernels.__path__, f"{kernels.__name__}."):
        import_module(module.name)
    assert {"_project", "_choose", "_attend_window"} <= in_line
    sources = (Path(next(iter(kernels.__path__))) / "prefill").glob("*.py")
    of_prompts = {name for source in sources for name in re.findall(r"^def (_\w+)", source.read_text("utf-8"), re.M)}
    assert "_multiply_many" in of_prompts and not in_line & of_prompts
