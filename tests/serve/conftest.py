"""A server in this process, on a scripted engine, and clients of several kinds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from dflash_tui.core.source import Emit, Happening
from dflash_tui.serve.server import ServeOptions, Serving
from engine.events import Event, TurnFinished, event_to_dict
from support.scripted_engine import ScriptedEngine
from tests.surroundings import until

if TYPE_CHECKING:
    import openai

Json = dict[str, Any]
Make = Callable[..., ScriptedEngine]
HTTP = httpx2.Client(timeout=60)  # for all: making one takes longer than any question
QUESTION = [{"role": "user", "content": "Write a page"}]


@dataclass
class Served:
    """A running server and what its engine said."""

    serving: Serving
    engine: ScriptedEngine
    events: list[Event] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.serving.url

    def http(self, **options: Any) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=60, **options)

    def client(self, **options: Any) -> openai.OpenAI:
        import openai  # here: a second, for the workers that need it

        made = {"base_url": f"{self.url}/v1", "api_key": "any", "max_retries": 0, "timeout": 20, **options}
        return openai.OpenAI(**made)

    def post(self, path: str = "chat/completions", **body: Any) -> httpx2.Response:
        asked = {"messages": QUESTION, **body} if path.startswith("chat") else body
        return HTTP.post(f"{self.url}/v1/{path}", json=asked)

    def chunks(self, path: str = "chat/completions", **body: Any) -> list[Json]:
        """The objects of a stream, which must end as streams do."""
        *sent, last, end = self.post(path, stream=True, **body).text.split("\n\n")
        assert (last, end) == ("data: [DONE]", "")
        assert all(each.startswith("data: ") for each in sent)
        return [json.loads(each.removeprefix("data: ")) for each in sent]

    until = staticmethod(until)

    def told(self, turn: int) -> list[Json]:
        """What the engine said of a turn, as JSON has it."""
        events = [event for event in self.events if getattr(event, "turn", None) == turn]
        return [json.loads(json.dumps(event_to_dict(event))) for event in events]

    def finished(self) -> list[TurnFinished]:
        return [event for event in self.events if isinstance(event, TurnFinished)]


Serve = Callable[..., Any]


@contextmanager
def serving(
    options: ServeOptions | None = None, ready: bool = True, make: Make = ScriptedEngine, **engine: Any
) -> Iterator[Served]:
    """``engine`` are options of the scripted one."""
    engines: list[ScriptedEngine] = []
    events: list[Event] = []

    def source(emit: Emit) -> ScriptedEngine:
        engines.append(make(emit, **{"round_seconds": 0.001, **engine}))
        return engines[0]

    def watch(event: Happening) -> None:
        events.append(event)  # type: ignore[arg-type]  # a scripted engine makes no jumps

    running = Serving(source, options or ServeOptions(port=0), watch, lambda *_: None)
    served = Served(running, engines[0], events)
    running.start()
    try:
        if ready:
            served.until(lambda: running.scheduler.ready is not None)
        yield served
    finally:
        running.end()
        running.join(5 if running.scheduler.ready else 0)


@pytest.fixture
def serve() -> Serve:
    """``with serve(ServeOptions(port=0, key="..."), ready=True, **scripted_engine_options) as served``."""
    return partial(serving)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """One for tests that leave no trace in it."""
    with serving() as running:
        yield running
