"""Our own attach on our own server: the events at both ends are the same, drafts included; and what the dialects of
others make of its figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Queue
from typing import Any, TypeVar

import pytest

from dflash_tui.attach.source import ServerSource
from dflash_tui.core.settings.servers import Dialect, ServerAddress
from dflash_tui.serve.server import ServeOptions
from engine.commands import Ask, Close, GenerationSettings, Message, Stop
from engine.events import EngineError, EngineReady, Event, PrefillDone, Step, TurnFinished, TurnStarted
from tests.serve.conftest import Serve, Served

E = TypeVar("E")


class Attached:
    """A source attached to a server, and what it said."""

    def __init__(self, served: Served, **address: Any) -> None:
        self.events: list[Event] = []
        self._queue: Queue[Event] = Queue()
        self.source = ServerSource(ServerAddress(served.url, **address), self._take)
        self.source.start()
        self.ready = self.wait_for(EngineReady)

    def _take(self, event: Any) -> None:
        self.events.append(event)
        self._queue.put(event)

    def wait_for(self, kind: type[E]) -> E:
        while True:
            event = self._queue.get(timeout=60)
            if isinstance(event, kind):
                return event
            assert not (isinstance(event, EngineError) and event.fatal), event

    def ask(self, turn: int, text: str = "Write a page", **settings: Any) -> None:
        self.source.send(Ask(turn, (Message("user", text),), GenerationSettings(**settings)))

    def answer(self, turn: int, **settings: Any) -> TurnFinished:
        self.ask(turn, **settings)
        return self.wait_for(TurnFinished)


@contextmanager
def attached(served: Served, **address: Any) -> Iterator[Attached]:
    made = Attached(served, **address)
    yield made
    made.source.send(Close())
    made.source.join(60)


def of_turn(events: list[Event], turn: int) -> list[Event]:
    """Events of a turn that an engine tells of, whatever its number."""
    kinds = (TurnStarted, PrefillDone, Step, TurnFinished)
    return [replace(event, turn=0) for event in events if isinstance(event, kinds) and event.turn == turn]


@pytest.mark.parametrize("trees", [False, True], ids=["chains", "trees"])
def test_events_are_the_same_at_both_ends(serve: Serve, trees: bool) -> None:
    options = ServeOptions(port=0, key="a-key-of-some-length")
    asked = GenerationSettings(8, 0.5, 0.9, 20, 7, 300)
    with serve(options, trees=trees) as served, attached(served, key=options.key) as client:
        for turn, settings in ((5, asked), (6, replace(asked, thinking=True))):
            client.answer(turn, **settings.to_dict())
            told = of_turn(served.events, turn - 4)
            assert of_turn(client.events, turn) == told and len(told) > 20
            assert served.engine.asked[-1].settings == settings
        ready = served.serving.scheduler.ready
        assert ready is not None and client.ready.times == "engine" and client.ready.server == served.url
        assert replace(client.ready, server="", dialect="", load_seconds=0) == replace(ready, load_seconds=0)


def test_a_stop_reaches_the_engine_and_the_next_question_is_answered(serve: Serve) -> None:
    with serve(round_seconds=0.02) as served, attached(served) as client:
        client.ask(1)
        client.wait_for(Step)
        client.source.send(Stop())
        assert client.wait_for(TurnFinished).reason == "stopped"
        served.until(lambda: served.finished())
        assert served.finished()[0].reason == "stopped"
        assert client.answer(2).reason == "stop"


def test_what_the_engine_refuses_is_told_in_its_words(serve: Serve) -> None:
    error = EngineError("usage", "The conversation has 9 tokens, the context holds 8.", "Ask something shorter.")
    with serve(turn_error=error) as served, attached(served) as client:
        assert client.answer(1).reason == "error"
        (told,) = [event for event in client.events if isinstance(event, EngineError)]
        assert error.message in told.message and not told.fatal


@pytest.mark.parametrize("dialect", ["llama.cpp", "vllm"])
def test_others_dialects_count_the_same_rounds(serve: Serve, dialect: Dialect) -> None:
    with serve() as served, attached(served, dialect=dialect) as client:
        finished, told = client.answer(1), served.finished()
        assert finished.text == told[0].text
        assert finished.statistics.acceptance_histogram == told[0].statistics.acceptance_histogram
        assert finished.statistics.num_draft_tokens == told[0].statistics.num_draft_tokens
