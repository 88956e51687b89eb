from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from queue import Empty, Queue
from typing import Any

import pytest

from dflash_tui.attach.source import ServerSource
from dflash_tui.attach.transport.connection import Patience
from dflash_tui.core.exit_codes import ExitCode, exit_code_for
from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.core.source import Happening
from engine.commands import Ask, Close, GenerationSettings, Message
from engine.events import EngineError, EngineReady, Step, TurnFinished, event_to_dict
from support.scripted_engine import ScriptedEngine
from tests.surroundings import threads

from .servers import FakeServer, Reply, sse

QUICK = Patience(connect=2.0, answer=2.0, first_token=5.0, silence=5.0, loading=5.0)
CHAT = "/v1/chat/completions"


class Attached:
    """A source on a server, and what it says."""

    def __init__(self, url: str, patience: Patience = QUICK, **address: Any) -> None:
        self.before = threads("server")
        self.events: Queue[Happening] = Queue()
        self.source = ServerSource(ServerAddress(url, **address), self.events.put, patience)
        self.source.start()
        self.turn = 0

    def until(self, *kinds: type, seconds: float = 20.0) -> list[Any]:
        """The events up to the first of these kinds, or to a fatal error."""
        events: list[Any] = []
        while not events or not isinstance(events[-1], kinds):
            try:
                events.append(self.events.get(timeout=seconds))
            except Empty:
                raise AssertionError(f"it says nothing more after {events}") from None
            if isinstance(events[-1], EngineError) and events[-1].fatal:
                break
        return events

    def ready(self) -> EngineReady:
        last = self.until(EngineReady)[-1]
        assert isinstance(last, EngineReady), last
        return last

    def send_question(self, text: str = "hello", **settings: Any) -> None:
        self.turn += 1
        self.source.send(Ask(self.turn, (Message("user", text),), GenerationSettings(**settings)))

    def ask(self, text: str = "hello", **settings: Any) -> list[Any]:
        """Every event of an answer."""
        self.send_question(text, **settings)
        return self.until(TurnFinished)

    def close(self) -> None:
        self.source.send(Close())
        self.source.join(60)
        assert threads("server") <= self.before


def only_error(events: list[Any]) -> EngineError:
    (error,) = (event for event in events if isinstance(event, EngineError))
    assert error.kind == "server" and exit_code_for(error.kind) is ExitCode.REMOTE
    assert error.message.endswith((".", "…", "!", "?")) and error.hint
    return error


def relayed_stream() -> bytes:
    """What our own server sends, from a scripted engine."""
    told: Queue[Any] = Queue()
    engine = ScriptedEngine(told.put, round_seconds=0.0, trees=True)
    engine.start()
    engine.send(Ask(7, (Message("user", "hello"),), GenerationSettings()))
    events: list[Any] = []
    while not events or not isinstance(events[-1], TurnFinished):
        event = told.get(timeout=60)
        if not isinstance(event, EngineReady) and (not isinstance(event, Step) or event.index < 12):
            events.append(event)
    engine.send(Close())
    chunks = [{"choices": [{"index": 0, "delta": {}}], "dflash": [event_to_dict(event)]} for event in events]
    return sse(*chunks, "[DONE]")


Attach = Callable[..., Attached]
Serve = Callable[..., FakeServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as open_:

        def start(chat: Reply | list[Reply] | None = None, tls: bool = False, **more: Reply) -> FakeServer:
            replies = {} if chat is None else {CHAT: chat}
            server = FakeServer({**replies, **{f"/{name}": reply for name, reply in more.items()}}, tls)
            open_.callback(server.close)
            return server

        yield start


@pytest.fixture
def attach() -> Iterator[Attach]:
    with ExitStack() as open_:

        def start(url: str, **options: Any) -> Attached:
            attached = Attached(url, **options)
            open_.callback(attached.close)
            return attached

        yield start
