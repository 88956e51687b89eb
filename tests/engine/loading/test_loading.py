"""A load that is called off ends there, wherever it is; what it ends with is what the plan has room for."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import count

import pytest

from engine.commands import EngineOptions
from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.host_rounds import HostRounds
from engine.events import EngineReady, Event, LoadProgress
from engine.loading.memory_plan import plan_memory
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


@pytest.mark.parametrize("room", [1000, 999])
def test_rounds_on_the_device_draft_in_8_bits_where_there_is_room(room: int, dense_pair: TinyPair) -> None:
    folders = (dense_pair.folder / "target", dense_pair.folder / "drafter")
    # Copies: rounds on the device lay the weights side by side.
    decoder = Decoder(deepcopy(dense_pair.target), deepcopy(dense_pair.drafter), 512)
    runner = Runner(decoder, ChatTokenizer(folders[0]))
    plan = plan_memory(*folders, 512, CPU)
    runner._choose_rounds(plan)
    assert isinstance(decoder.rounds, HostRounds)
    plan = replace(plan, device_rounds=True, draft_copy=1000)
    runner._choose_rounds(replace(plan, available=plan.weights + plan.caches + plan.scratch + room))
    assert isinstance(decoder.rounds, DeviceRounds)
    assert decoder.rounds.launches.drafts_in_8_bits == (room == 1000)
