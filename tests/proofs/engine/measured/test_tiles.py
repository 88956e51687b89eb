"""Tiles are chosen by timing on cards that nobody measured, once, and hold for every width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import torch

from engine.commands import WeightFormat
from engine.decoding.decoder import Decoder, Prompt
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.files.cache_folder import cache_folder
from engine.kernels.decode.tiling.tile_trials import TileTrial
from engine.kernels.decode.tiling.tiles import DraftTiles, TargetTiles, Tiles
from engine.kernels.toolchain.card import HOPPER, representative, stand_in
from engine.kernels.toolchain.jit import INTERPRETED, KernelFailure
from engine.loading import choose_rounds as starting
from engine.loading.choose_rounds import derived_tiles, kept_tiles, time_tiles
from engine.measured import tiles as tuning
from engine.measured.tiles import tune
from support.shapes import random_pair, read_shape
from tests.engine.conftest import CPU
from tests.engine.decoding.pairs import DRAFT_TILES, TILES
from tests.engine.small_decoders import prompt_ids

SMALL = representative(86)
SHARED = TileTrial(lambda _tiles: [lambda: None], 2, shares=True)


@pytest.fixture(autouse=True)
def kept_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def costs(cost: Callable[[Tiles], float]) -> tuple[dict[str, TileTrial[TargetTiles]], tuning.Timer]:
    """TileTrials whose launches say what they cost."""

    def launches(tiles: TargetTiles, name: str) -> list[Any]:
        return [getattr(tiles, name)]

    def timer(made: Sequence[Any], _device: torch.device) -> float:
        return cost(made[0])

    trials = {
        name: TileTrial(lambda tiles, name=name: launches(tiles, name), splits=name == "output")  # type: ignore[misc]
        for name in ("qkv", "output")
    }
    return trials, timer


def test_the_best_is_reached_step_by_step_and_what_fails_is_passed_over() -> None:
    def cost(tiles: Tiles) -> float:
        if tiles.stages < 4:
            raise KernelFailure("_project", ValueError())
        return abs(tiles.columns - 128) + abs(tiles.splits - 2) + 10 * abs(tiles.warps - 4) + 100

    trials, timer = costs(cost)
    before = TargetTiles()
    tuned = tune(before, trials, HOPPER, CPU, perf_counter() + 60, timer=timer)
    assert tuned.complete and [each.name for each in tuned.timed] == ["qkv", "output"]
    assert tuned.tiles == replace(
        before, qkv=replace(before.qkv, columns=128), output=replace(before.output, columns=128, splits=2, warps=4)
    )
    assert tuned.timed[0].before_us == 197 and tuned.timed[0].now_us == 101
    assert (tuned.timed[0].before, tuned.timed[0].now) == (before.qkv, tuned.tiles.qkv)


# --- with a decoder


@pytest.fixture
def unmeasured() -> Iterator[None]:
    stand_in(SMALL)
    yield
    stand_in(HOPPER)


def on_device(weights: WeightFormat, experts: bool = True) -> Decoder:
    shape = read_shape("tiny")
    if not experts:
        shape = replace(shape, target=replace(shape.target, moe=None))  # type: ignore[type-var]
    target, drafter = random_pair(shape, CPU, weights=weights)
    decoder = Decoder(target, drafter, 64)
    decoder.use_rounds(DeviceRounds(RoundLaunches(decoder, None, TILES, DRAFT_TILES)))
    return decoder


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
@pytest.mark.usefixtures("unmeasured")
def test_what_is_timed_is_used_kept_and_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every launch that is timed runs; here more columns are always better, and a kept file decides the next start."""
    monkeypatch.setattr(starting, "ROUNDS", 2)
    for check in ("passes_depart", "wide_rows_depart"):
        monkeypatch.setattr(starting, check, lambda *_others: None)  # NumPy's sums have another order
    ran: list[int] = []

    def timer(launches: Sequence[Callable[[], None]], _device: torch.device, _replays: int) -> float:
        if not ran or len(ran) < 12:
            launches[0]()
        ran.append(len(launches))
        return 100.0 / next(part.columns for part in launches[0].args if isinstance(part, Tiles))  # type: ignore[attr-defined]

    monkeypatch.setattr(tuning, "time_launches", timer)
    decoder, prompt = on_device("bf16"), Prompt(prompt_ids(9), 0)
    steps: list[tuple[int, int]] = []
    said: list[str] = []
    assert kept_tiles(decoder, False) is None
    found = time_tiles(decoder, prompt, said.append, lambda done, total: steps.append((done, total)))
    assert not said and isinstance(decoder.rounds, DeviceRounds) and found.complete
    assert steps == [(done, len(found.timed)) for done in range(len(found.timed))]
    launches = decoder.rounds.launches
    assert launches.drafter is not None and launches.drafter.tiles.qkv.columns == 128
    in_use: tuple[TargetTiles, DraftTiles] = (launches.target.tiles, launches.drafter.tiles)
    assert kept_tiles(decoder, False) == in_use != derived_tiles(decoder, False)
    (path,) = cache_folder("tiles").iterdir()
    path.write_text(path.read_text().replace('"columns": 128', '"columns": 0'))
    assert kept_tiles(decoder, False) is None
