"""The search for tiles goes where most is to be gained, keeps what it finds, and takes nothing that changes bits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from engine.decoding.decoder import Decoder
from engine.kernels.decode import attend_tiles, tiles
from engine.kernels.decode.tiles import DRAFT_TILES, DraftTiles, RowTiles, TargetTiles, Tiles, target_tiles
from engine.kernels.decode.trials import Trial
from engine.kernels.toolchain.card import HOPPER, representative
from engine.kernels.toolchain.jit import INTERPRETED, KernelFailure
from engine.lab.bench.pass_tiles import Kind, Knob, PassTiles, as_data, read_tiles, source_lines, with_attention
from engine.lab.bench.shapes import read_shape
from engine.lab.bench.tiles import Results, Search
from engine.lab.bench.weights import random_pair
from engine.lab.bench.whole_passes import Room, WholePasses
from engine.layer_config import MoeConfig
from tests.engine.conftest import CPU

SMALL = representative(86)
LAYERS = read_shape("tiny", 6).target.attention
START = with_attention(PassTiles(TargetTiles(), DRAFT_TILES), LAYERS)
QKV, OUTPUT = (
    Knob("target", name, Trial(lambda _tiles: [], splits=splits)) for name, splits in (("qkv", False), ("output", True))
)


class Costs:
    """Passes whose time is told."""

    contexts = (128, 2048)

    def __init__(self, cost: Callable[[PassTiles], float], wrong: Callable[[PassTiles], str | None]):
        self._cost, self.what_is_wrong = cost, wrong
        self.decoder = Decoder(*random_pair(read_shape("tiny", 6), CPU), 64)
        self.timed: list[PassTiles] = []

    def times(self, kinds: Sequence[Kind], chosen: PassTiles, contexts: int = 1, replays: int = 1) -> list[float]:
        self.timed.append(chosen)
        return [self._cost(chosen)] * len(kinds) * contexts

    def rooms(self, chosen: PassTiles, bandwidth: float) -> list[Room]:
        return [Room(OUTPUT, 100.0, 90.0), Room(QKV, 100.0, 10.0), Room(Knob("", "window", None), 1.0, 0.0)]


def searched(
    cost: Callable[[PassTiles], float],
    wrong: Callable[[PassTiles], str | None] = lambda _tiles: None,
    seconds: float = 60,
) -> tuple[Results, Costs, list[int]]:
    passes, results, gains = Costs(cost, wrong), Results("tiny", "bf16", "cpu", "", START), list[int]()
    search = Search(passes, results, None, 1, HOPPER)  # type: ignore[arg-type]
    search.run(1e12, perf_counter() + seconds, lambda: gains.append(len(results.gains)))
    return results, passes, gains


def cost(chosen: PassTiles) -> float:
    if chosen.target.qkv.stages < 5:
        raise KernelFailure("_project", ValueError("too few"))
    assert chosen.window is not None
    return 100 + abs(chosen.target.qkv.columns - 128) + abs(chosen.target.output.splits - 2) + 0.1 * chosen.window.split


def test_the_best_is_reached_step_by_step_and_what_fails_is_noted() -> None:
    results, passes, gains = searched(cost)
    assert results.complete and results.trying is None
    assert (results.tiles.target.qkv.columns, results.tiles.target.output.splits) == (128, 2)
    assert results.tiles.window is not None and results.tiles.window.split == 32
    assert {what for what, _, _ in results.failed} == {"target.qkv"}
    first = next(each for each in passes.timed if each != START)
    assert first.target.output == START.target.output  # qkv has more room to its bytes
    assert gains == sorted(gains)  # it is told after each


def test_noise_changes_nothing_and_time_ends_it() -> None:
    results, *_ = searched(lambda chosen: 100 - 0.2 * (chosen != START))
    assert results.complete and results.tiles == START and not results.gains
    results, passes, _ = searched(cost, seconds=-1)
    assert not results.complete and not passes.timed


def test_what_changes_bits_is_not_taken() -> None:
    results, *_ = searched(cost, lambda chosen: "other bits" if chosen.target.qkv.columns > 32 else None)
    assert results.tiles.target.qkv.columns == 32 and results.tiles.target.output.splits == 2
    assert any("other bits" in why for _, _, why in results.failed)


def test_tiles_in_use_that_go_wrong_end_it() -> None:
    asked: list[PassTiles] = []

    def wrong(chosen: PassTiles) -> str | None:
        asked.append(chosen)
        return "other bits" if len(asked) > 1 else None

    with pytest.raises(RuntimeError, match="wrong by now"):
        searched(cost, wrong)
    assert asked[0] == asked[-1] == START  # not the candidate in between


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter")
def test_a_pass_says_whether_a_row_alone_has_other_bits() -> None:
    decoder = Decoder(*random_pair(read_shape("tiny", 6), CPU), 128)
    passes = WholePasses(decoder, None, (40,))
    assert START.full is not None  # a launch less has its bits on a GPU, but not where NumPy multiplies
    start = replace(START, full=replace(START.full, alone=False))
    assert passes.what_is_wrong(start) is None
    alone = replace(start.target.expert_gate_up_alone, depth=32)
    assert passes.what_is_wrong(replace(start, target=replace(start.target, expert_gate_up_alone=alone)))


def test_a_row_alone_takes_steps_as_deep_as_sixteen() -> None:
    deeper = Knob("target", "expert_gate_up", Trial(lambda _tiles: [], 2, 4, True, shares=True))
    alone = Knob("target", "expert_gate_up_alone", Trial(lambda _tiles: [], 2, 4, True, depth=False, warps=False))
    stale = replace(START.target.expert_gate_up_alone, columns=16)
    found = deeper.put(START, Tiles(32, 256, warps=8, stages=3, turned=True), HOPPER)
    for each in (found, alone.put(found, stale, HOPPER)):
        alike = each.target.expert_gate_up_alone
        assert (alike.depth, alike.warps, alike.stages) == (256, 8, 3 if each is found else stale.stages)
        assert alike.turned  # sums begin where those of sixteen rows do


def test_packed_products_ask_for_nothing_and_need_no_shared_memory() -> None:
    packed = Knob("target", "qkv", Trial(lambda _tiles: [], 1, 4, True))
    others = [each for each in packed.around(Tiles(128, 256), SMALL, 1024) if isinstance(each, Tiles)]
    assert others and not any(each.early for each in others)
    assert not all(replace(packed.trial, packed=False).fits(each, SMALL) for each in others)  # type: ignore[type-var]


def test_what_was_found_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attend_tiles, "WINDOW_TILES", dict(attend_tiles.WINDOW_TILES))
    found = PassTiles(
        replace(START.target, qkv=Tiles(64, 64, registers=128, early=0, turned=True), rows=RowTiles(4)),
        replace(DRAFT_TILES, head=Tiles(128, 128)),
        replace(START.window, split=32) if START.window else None,
        START.full,
    )
    (tmp_path / "found.json").write_text(json.dumps({"tiles": as_data(found)}))
    assert read_tiles(tmp_path / "found.json", START) == found
    found.take_effect(LAYERS)
    assert with_attention(found, LAYERS) == found != START
    for each in (found.target, found.drafter):
        assert each is not None and eval(source_lines(each), vars(tiles)) == each


@pytest.mark.parametrize(
    "tiles",
    [
        None,
        {},
        {"target": {"qkv": {"columns": -1, "depth": 64}}},
        {"target": {"qkv": {"columns": 32, "depth": 64, "turned": 1}}},
        {"target": {"other": {}}},
        {"target": 1},
    ],
)
def test_what_holds_no_tiles_is_refused(tiles: Any, tmp_path: Path) -> None:
    whole = {"drafter": None, "window": None, "full": None}
    (tmp_path / "found.json").write_text(json.dumps({"tiles": whole | tiles} if tiles is not None else []))
    with pytest.raises(ValueError, match="holds no tiles"):
        read_tiles(tmp_path / "found.json", START)


def test_tiles_of_a_targets_sizes_come_before_those_of_its_format(monkeypatch: pytest.MonkeyPatch) -> None:
    moe = MoeConfig(num_experts=128, top_k=8, intermediate_size=704)
    found = replace(TargetTiles(), head=Tiles(32, 128))
    monkeypatch.setitem(tiles.MEASURED_AT, ("bf16", (2816, 704)), found)
    assert target_tiles(moe, HOPPER, "bf16", (2816, 704)) == found
    assert target_tiles(moe, HOPPER, "bf16", (2816, 768)) == TargetTiles()
    narrow = target_tiles(moe, HOPPER, "bf16", (2048, 640))
    assert narrow.router == replace(TargetTiles().router, splits=8)  # of 256 each: a ninth would have nothing
    monkeypatch.setitem(tiles.DRAFTS_MEASURED_AT, (True, (2816, 9728)), DraftTiles())
    assert tiles.draft_tiles(True, HOPPER, (2816, 9728)) == DraftTiles() != tiles.draft_tiles(True, HOPPER)


def test_what_is_tried_of_attention_fits_together() -> None:
    for knob in (Knob("", "window", None), Knob("", "full", None)):
        around = knob.around(knob.of(START), HOPPER, 64)
        assert len(around) > 4 and knob.of(START) not in around
        for each in around:
            assert getattr(each, "keys", each.split) <= each.split  # type: ignore[union-attr]
