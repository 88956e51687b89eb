"""A load that is called off ends there, wherever it is."""

from __future__ import annotations

from itertools import count

import pytest

from engine.commands import EngineOptions
from engine.events import EngineReady, Event, LoadProgress
from engine.runner import Runner
from tests.engine.conftest import TinyPair


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
