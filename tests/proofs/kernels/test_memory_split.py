"""Kernels of a round's line ask for one split of a multiprocessor's memory, whenever they are loaded."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

from engine import kernels
from engine.commands import WeightFormat
from engine.kernels.decode.tiling.target_tiles import target_tiles
from engine.kernels.toolchain.card import HOPPER, KILOBYTE
from engine.kernels.toolchain.early_launch import in_line
from engine.kernels.toolchain.memory_split import EVERYTHING, MemorySplit
from engine.layer_config import MoeConfig

SMALL = replace(HOPPER, capability=120, shared_memory=99 * KILOBYTE, shared_of_multiprocessor=100 * KILOBYTE)


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


def test_another_target_takes_the_loaded_kernels_along() -> None:
    driver = Driver()
    split = MemorySplit(driver)
    split.share(132, HOPPER)
    split.loaded(1, "_project", True)
    split.share(None, HOPPER)
    split.loaded(2, "_head", True)
    assert driver.percent == {1: EVERYTHING, 2: EVERYTHING}
    asked = driver.asked
    split.share(None, HOPPER)
    assert driver.asked == asked, "nothing has changed"


def test_a_card_with_less_than_is_wanted_shares_everything() -> None:
    driver = Driver()
    split = MemorySplit(driver)
    split.loaded(1, "_project", True)
    split.share(132, SMALL)
    assert split.percent == EVERYTHING and driver.percent == {1: EVERYTHING}


def test_a_driver_that_refuses_costs_no_kernel(caplog: pytest.LogCaptureFixture) -> None:
    split = MemorySplit(lambda _function, _percent: 1)
    split.loaded(1, "_project", True)
    assert "_project keeps its own split" in caplog.text


def test_packed_weights_have_a_cache_and_bf16_shares_everything() -> None:
    moe = MoeConfig(num_experts=128, top_k=8, intermediate_size=704)
    formats: tuple[WeightFormat, ...] = ("bf16", "fp8", "int4", "mxfp4")
    assert [target_tiles(moe, HOPPER, weights).shared for weights in formats] == [None, 132, 132, 132]


def test_kernels_of_prompts_have_names_of_their_own() -> None:
    """By which a loaded kernel is known to stand in a line, or not."""
    for module in walk_packages(kernels.__path__, f"{kernels.__name__}."):
        import_module(module.name)
    assert {"_project", "_choose", "_attend_window"} <= in_line
    sources = (Path(next(iter(kernels.__path__))) / "prefill").glob("*.py")
    of_prompts = {name for source in sources for name in re.findall(r"^def (_\w+)", source.read_text("utf-8"), re.M)}
    assert "_multiply_many" in of_prompts and not in_line & of_prompts
