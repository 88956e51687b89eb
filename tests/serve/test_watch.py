"""The window on a server: what its clients ask and get is on the screen, and nothing is asked from there."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.app.application import ChatApp
from dflash_tui.app.widgets.slider import BlockSlider, TemperatureSlider
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import Emit
from dflash_tui.serve.server import ServeOptions, Serving
from dflash_tui.serve.watch import ASKED_ELSEWHERE, LEAVING, WatchSource
from engine.commands import Close, GenerationSettings
from support.scripted_engine import ScriptedEngine
from tests.app.conftest import Driver
from tests.app.pilot import SteadyPilot

from .conftest import Json


@asynccontextmanager
async def watched(tmp_path: Path, **options: Any) -> AsyncIterator[tuple[Driver, Serving]]:
    engines: list[ScriptedEngine] = []
    servings: list[Serving] = []

    def engine(emit: Emit) -> ScriptedEngine:
        engines.append(ScriptedEngine(emit, **{"round_seconds": 0.002, **options}))
        return engines[0]

    def serve(mirror: Emit) -> Serving:
        servings.append(Serving(engine, ServeOptions(port=0), mirror, lambda *_: None))
        return servings[0]

    queue = EventQueue(SessionLog.nowhere())
    about: Callable[[Serving], str] = lambda serving: f"Serving at {serving.url}"  # noqa: E731
    app = ChatApp(GenerationSettings(), tmp_path, queue, lambda emit: WatchSource(emit, serve, about))
    async with app.run_test(size=(120, 36), notifications=True):
        driver = Driver(app, SteadyPilot(app), engines[0], tmp_path)
        await driver.until(lambda: driver.screen.chat.reducer.ready is not None)
        yield driver, servings[0]
    driver.screen.join_engine(10)


def ask(serving: Serving, **body: Any) -> Json:
    request = urllib.request.Request(f"{serving.url}/v1/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        told: Json = json.load(answer)
    return told


def asked(text: str) -> list[Json]:
    return [{"role": "user", "content": text}]


async def text(driver: Driver) -> str:
    await driver.pilot.pause()
    return "\n".join(strip.text for strip in driver.log.render_lines(driver.log.region.reset_offset))


async def test_questions_and_tokens_of_clients_are_shown(tmp_path: Path) -> None:
    async with watched(tmp_path, answer="One two three four five six.") as (driver, serving):
        assert f"Serving at {serving.url}" in await text(driver)
        for number in range(2):
            body: Json = {"messages": asked(f"question {number}"), "temperature": 0.5, "block_size": 8, "user": "x"}
            await asyncio.to_thread(ask, serving, **body)
        await driver.until(lambda: len(driver.screen.chat.answers) == 2)
        shown = await text(driver)
        assert all(words in shown for words in ("question 0", "question 1", "One two three four five six."))
        assert driver.screen.chat.reducer.turn.snapshot.acceptance.num_spec_steps > 0
        block, temperature = driver.screen.query_one(BlockSlider), driver.screen.query_one(TemperatureSlider)
        assert block.disabled and (block.size_chosen, temperature.value) == (8, 0.5)
        await driver.ask("hello")
        await driver.until(lambda: ASKED_ELSEWHERE in driver.notices())
        assert len(driver.engine.asked) == 2


async def test_leaving_is_said_twice_and_ends_the_server(tmp_path: Path) -> None:
    async with watched(tmp_path) as (driver, serving):
        await driver.ask("/quit")
        await driver.until(lambda: LEAVING in driver.notices())
        assert driver.app.is_running and ask(serving, messages=asked("hi"), stop="page")
        driver.screen.quit_until = float("inf")
        await driver.pilot.press("ctrl+q")
        await driver.until(lambda: not driver.app.is_running or driver.app._exit)
    assert any(isinstance(command, Close) for command in driver.engine.commands)
    with pytest.raises(OSError):
        ask(serving, messages=asked("hi"))
