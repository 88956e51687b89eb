"""A third source, as a server is one: it counts what it accepted, and knows no drafts, no odds and no parts of a round.

It lives here alone: nothing in the program was written for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dflash_tui.app.application import ChatApp
from dflash_tui.app.event_queue import EventQueue
from dflash_tui.app.widgets.meters import CostGauge
from dflash_tui.app.widgets.round_strip import RoundStrip
from dflash_tui.app.widgets.slider import BlockSlider, TemperatureSlider
from dflash_tui.app.widgets.step_table import StepTable
from dflash_tui.core.sessions.sessions import SessionLog, load_session
from dflash_tui.core.source import Capabilities, Emit
from engine.commands import Ask, GenerationSettings
from engine.events import Event, Step, TurnStarted

from ..scripted_engine import ScriptedEngine
from .conftest import Driver
from .pilot import SteadyPilot

BLOCK, SECRET = "The server chose its block size when it was started.", "The server doesn't tell what was drafted."
FIXED = "This server takes a temperature, and nothing else."


class Server(ScriptedEngine):
    """Says what a server's stream says: texts, and how many of how many were accepted."""

    capabilities = Capabilities(
        {"block_size": BLOCK, "seed": FIXED, "speculation": FIXED, "thinking": FIXED, "draft_probabilities": SECRET},
        local=False,
    )

    def __init__(self, emit: Emit) -> None:
        super().__init__(lambda event: emit(as_told(event)), round_seconds=0.002)


def as_told(event: Event) -> Event:
    match event:
        case TurnStarted():
            return replace(event, settings={"temperature": event.settings["temperature"]})
        case Step():
            kept = event.num_accepted
            draft = tuple(
                replace(token, id=None, text=token.text if place < kept else None, probability=None,
                        target_probability=None)
                for place, token in enumerate(event.draft)
            )  # fmt: skip
            emitted = tuple(replace(token, id=None, probability=None) for token in event.emitted)
            return replace(event, draft=draft, emitted=emitted, draft_ms=None, verify_ms=None)
    return event


@asynccontextmanager
async def attached(out_dir: Path, size: tuple[int, int] = (120, 36)) -> AsyncIterator[Driver]:
    servers: list[Server] = []

    def source(emit: Emit) -> Server:
        servers.append(Server(emit))
        return servers[0]

    queue = EventQueue(SessionLog.create())
    app = ChatApp(GenerationSettings(), out_dir, queue, source)
    async with app.run_test(size=size, notifications=True):
        driver = Driver(app, SteadyPilot(app), servers[0], out_dir)
        await driver.until(lambda: driver.screen.chat.reducer.ready is not None)
        yield driver
    queue.log.close()


@pytest.fixture
def server(tmp_path: Path) -> Callable:
    return lambda **options: attached(tmp_path / "out", **options)


async def test_what_it_can_not_set_is_grey_and_says_why(server: Callable) -> None:
    async with server() as driver:
        block, temperature = driver.screen.query_one(BlockSlider), driver.screen.query_one(TemperatureSlider)
        assert block.disabled and block.tooltip == BLOCK and "not known" in str(block.render())
        assert not temperature.disabled and "not known" not in str(temperature.render())
        for typed, reason in (("/block 8", BLOCK), ("/seed 7", FIXED), ("/speculation off", FIXED), ("/race", FIXED)):
            driver.app.clear_notifications()
            await driver.ask(typed)
            await driver.until(lambda reason=reason: reason in driver.notices())
            driver.prompt.text = ""
        driver.app.clear_notifications()
        await driver.pilot.press("alt+up")
        await driver.until(lambda: BLOCK in driver.notices())
        await driver.ask("/temp 0.5")
        assert temperature.value == 0.5
        await driver.ask_and_wait("hello")
        assert driver.sent(Ask)[-1].settings.temperature == 0.5


async def test_what_it_does_not_tell_is_said_to_be_unknown(server: Callable) -> None:
    async with server() as driver:
        await driver.ask_and_wait("hello")
        assert driver.screen.chat.reducer.turn.acceptance.num_spec_steps > 5
        strip = str(driver.screen.query_one(RoundStrip).render())
        assert "kept" in strip and "draft " not in strip and "moon" not in strip, "the script drafts a moon, in vain"
        assert "draft and verify not known" in str(driver.screen.query_one(CostGauge).lines(2)[0])
        await driver.ask("/steps 2")
        await driver.pilot.pause()
        table = str(driver.screen.query_one(StepTable).render())
        rows = {line[:10].strip(): line[10:].strip() for line in table.splitlines()}
        assert rows["drafter p"] == rows["target p"] == rows["its p"] == "not known"
        assert "░" in rows["draft"] and "draft and verify not known" in table
        await driver.pilot.press("escape")
        driver.app.clear_notifications()
        await driver.ask("/lens")
        assert driver.screen.viewer.lenses.lens == "steps", "the lens that would show nothing is passed over"
        await driver.ask("/lens confidence")
        await driver.until(lambda: SECRET in driver.notices())


async def test_its_rounds_survive_the_disk(server: Callable, tmp_path: Path) -> None:
    async with server() as driver:
        await driver.ask_and_wait("hello")
        steps = list(driver.screen.chat.reducer.turn.history)
        path = driver.screen.queue.log.path
        await driver.ask(f"/trace {tmp_path / 'run.dft'}")
        await driver.until(lambda: (tmp_path / "run.dft").exists())
    (turn,) = load_session(path).turns
    assert [event for event in turn.events() or () if isinstance(event, Step)] == steps
    assert (tmp_path / "run.dft").read_bytes().startswith(b"dflash-trace 5\n")
