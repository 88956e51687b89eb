"""A load that is called off ends there, wherever it is; what it ends with is what the plan has room for."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import fields, replace
from itertools import count

import pytest
import torch

from engine import runner
from engine.commands import EngineOptions
from engine.decoding.decoder import Decoder, Prompt
from engine.events import EngineReady, Event, LoadProgress
from engine.kernels.decode.tiling.target_tiles import target_tiles
from engine.kernels.decode.tiling.tiles import LEAST_STAGES, draft_tiles, products_of, with_least_memory
from engine.kernels.toolchain.card import HOPPER
from engine.kernels.weights.int8 import Int8Weight
from engine.loading.choose_rounds import Say, Tiling
from engine.loading.memory_plan import Drafting, plan_memory
from engine.models.dflash.weights import DraftWeights, hold_in_8_bits
from engine.models.merged_weights import LayerWeights
from engine.runner import Runner
from engine.tokenization.tokenizer import ChatTokenizer
from tests.engine.conftest import CPU, TinyPair


@pytest.mark.parametrize("asked", [0, 1, 5, 20])
def test_loading_stops_between_two_tensors(asked: int, dense_pair: TinyPair) -> None:
    events: list[Event] = []
    numbers = count()
    options = EngineOptions(str(dense_pair.folder / "target"), str(dense_pair.folder / "drafter"), device="cpu")
    assert Runner.load(options, events.append, cancelled=lambda: next(numbers) >= asked) is None
    assert next(numbers) == asked + 1, "once it said so, nobody asks again"
    assert not any(isinstance(event, EngineReady) for event in events)
    assert "warming up" not in [event.phase for event in events if isinstance(event, LoadProgress)]


def test_loading_goes_on_when_nobody_objects(dense_pair: TinyPair) -> None:
    events: list[Event] = []
    options = EngineOptions(str(dense_pair.folder / "target"), "none", device="cpu", time_rounds=False)
    assert Runner.load(options, events.append, cancelled=lambda: False) is not None
    ready = events[-1]
    assert isinstance(ready, EngineReady) and ready.drafter is None and ready.max_block_size == 1


@pytest.mark.parametrize("way", [Drafting(1), Drafting(1, head_in_8_bits=True), Drafting(1, packed=True)])
def test_rounds_on_the_device_draft_by_the_plan(
    way: Drafting, dense_pair: TinyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = (dense_pair.folder / "target", dense_pair.folder / "drafter")
    chosen: list[tuple[Int8Weight | None, Sequence[Tiling]]] = []

    def choose(_decoder: Decoder, _prompt: Prompt, head: Int8Weight | None, ways: Sequence[Tiling], _say: Say) -> None:
        chosen.append((head, ways))

    monkeypatch.setattr(runner, "choose_rounds", choose)
    # A copy: the head's 8 bits are of its own weights.
    target, drafter = deepcopy(dense_pair.target), deepcopy(dense_pair.drafter)
    if way.packed:
        hold_in_8_bits(drafter)
    made = Runner(Decoder(target, drafter, 512), ChatTokenizer(folders[0]))
    plan = plan_memory(*folders, 512, CPU)
    made.prepare_rounds(plan, lambda _event: None)
    made.prepare_rounds(replace(plan, device_rounds=True, draftings=(way,)), lambda _event: None)
    (no_head, no_ways), (head, ways) = chosen
    assert no_head is None and not no_ways
    assert (head is not None) == way.head_in_8_bits
    best = target_tiles(None, HOPPER), draft_tiles(way.in_8_bits, HOPPER)
    assert list(ways) == [best, tuple(map(with_least_memory, best))]


def test_tiles_of_least_memory_are_so_for_a_row_alone() -> None:
    best = target_tiles(None, HOPPER, sizes=(3840, 15_360))
    least = products_of(with_least_memory(best)).values()
    assert best.qkv.copied and {(each.stages, each.copied) for each in least} == {(LEAST_STAGES, None)}


def test_a_drafter_in_8_bits_drafts_with_the_copies_weights(dense_pair: TinyPair) -> None:
    """Instead of its own or beside them, they are the same."""
    beside, alone = (deepcopy(dense_pair.drafter) for _ in range(2))
    copies = DraftWeights.of(beside, in_8_bits=True)
    hold_in_8_bits(alone)
    held = DraftWeights.of(alone, in_8_bits=False)

    def tensors(weights: DraftWeights | LayerWeights) -> list[torch.Tensor | None]:
        names = [field.name for field in fields(weights) if field.name != "layers" and "bias" not in field.name]
        found = [getattr(weights, name) for name in names]
        return [tensor for weight in found for tensor in (weight.values, weight.scales)]

    assert len(held.layers) == len(copies.layers) > 0
    for one, other in zip((held, *held.layers), (copies, *copies.layers), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(tensors(one), tensors(other), strict=True))  # type: ignore[arg-type]
