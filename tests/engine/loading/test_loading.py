"""A load that is called off ends there, wherever it is; what it ends with is what the plan has room for."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import count

import pytest
import torch

from engine.commands import EngineOptions
from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.host_rounds import HostRounds
from engine.events import EngineReady, Event, LoadProgress
from engine.kernels.weights.int8 import Int8Weight
from engine.loading.memory_plan import Drafting, plan_memory
from engine.models.dflash.weights import hold_in_8_bits
from engine.runner import Runner
from engine.tokenizer import ChatTokenizer
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
    options = EngineOptions(str(dense_pair.folder / "target"), "none", device="cpu")
    assert Runner.load(options, events.append, cancelled=lambda: False) is not None
    ready = events[-1]
    assert isinstance(ready, EngineReady) and ready.drafter is None and ready.max_block_size == 1


def test_rounds_draft_with_what_is_held(dense_pair: TinyPair) -> None:
    """The same weights in 8 bits, beside the drafter's own or instead of them; the head's copy where there is one."""
    folders = (dense_pair.folder / "target", dense_pair.folder / "drafter")
    plan = plan_memory(*folders, 512, CPU)
    drafted = []
    for way in (Drafting(1, head_in_8_bits=True), Drafting(1, packed=True, head_in_8_bits=True), Drafting(1, True)):
        # Copies: rounds on the device lay the weights side by side.
        decoder = Decoder(deepcopy(dense_pair.target), deepcopy(dense_pair.drafter), 512)
        runner = Runner(decoder, ChatTokenizer(folders[0]))
        runner._choose_rounds(plan)
        assert isinstance(decoder.rounds, HostRounds) and decoder.drafter is not None
        if way.packed:
            hold_in_8_bits(decoder.drafter)
        runner._choose_rounds(replace(plan, device_rounds=True, draftings=(way,)))
        assert isinstance(decoder.rounds, DeviceRounds)
        launches = decoder.rounds.launches
        assert launches.drafts_in_8_bits == way.head_in_8_bits and launches.drafter is not None
        drafted.append(launches.drafter._weights)
    for held in drafted:
        pairs = [(held.context, drafted[0].context), (held.context_kv, drafted[0].context_kv)]
        for layer, first in zip(held.layers, drafted[0].layers, strict=True):
            pairs += [(layer.qkv, first.qkv), (layer.output, first.output), (layer.gate_up, first.gate_up)]
            pairs += [(layer.down, first.down)]
        assert all(isinstance(one, Int8Weight) and torch.equal(one.values, other.values) for one, other in pairs)
        assert all(
            one.scales is not None and torch.equal(one.scales, other.scales)
            for one, other in pairs
            if other.scales is not None
        )
