"""A chat on the scripted engine, driven by keys and clicks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import pytest_asyncio
from textual._compositor import Compositor
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.notifications import Notification
from textual.screen import Screen

from dflash_tui.app.application import ChatApp
from dflash_tui.app.chat.screen import ChatScreen
from dflash_tui.app.widgets.prompt import Prompt
from dflash_tui.app.widgets.token_log import TokenLog
from dflash_tui.core.conversation.start import Start
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.settings.config import ScreenOptions
from dflash_tui.core.source import Emit
from engine.commands import Command, GenerationSettings
from support.scripted_engine import ScriptedEngine

from .pilot import SteadyPilot


@dataclass
class Driver:
    """The running application and short words for what tests do with it."""

    app: ChatApp
    pilot: SteadyPilot
    engine: ScriptedEngine
    out_dir: Path

    @property
    def screen(self) -> ChatScreen:
        return self.app.chat_screen

    @property
    def log(self) -> TokenLog:
        return self.screen.query_one(TokenLog)

    @property
    def prompt(self) -> Prompt:
        return self.screen.query_one(Prompt)

    def sent(self, kind: type[Command]) -> list[Any]:
        return [command for command in self.engine.commands if isinstance(command, kind)]

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait for what another thread will do."""
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.01)
        await self.pilot.pause()

    async def ask(self, text: str = "Write a page") -> None:
        self.prompt.text = text
        await self.pilot.press("enter")

    async def ask_and_wait(self, text: str = "Write a page") -> None:
        await self.ask(text)
        await self.until(lambda: not self.screen.chat.busy)

    async def rest(self) -> None:
        """As it was when it opened, but for what was said: nothing stands before it, and nothing is typed."""
        while self.app.screen is not self.screen:
            await self.pilot.press("escape")
        if self.screen.viewer.open or self.screen.viewer.position is not None:
            await self.pilot.press("escape")
        if self.app.size != SIZE:
            await self.pilot.resize_terminal(*SIZE)
        self.app.theme = "dflash-dark"
        self.screen.viewer.set_pace(1.0)
        self.screen.viewer.lenses.choose("verdict")
        self.prompt.clear()
        self.prompt.focus()
        self.app.clear_notifications()
        await self.pilot.pause()

    def notices(self) -> str:
        return " ".join(f"{notice.title} {notice.message}" for notice in self.app._notifications)


Launch = Callable[..., Any]
SIZE = (120, 36)
DRAWN_FRAMES = 6
"""The first, and every so-manieth from then on."""


@pytest.fixture(scope="session", autouse=True)
def _style_sheets_are_parsed_once() -> Iterator[None]:
    """Not by each of hundreds of applications again, which never change what was parsed."""
    parse, known = Stylesheet._parse_rules, dict[object, list[RuleSet]]()

    def parse_once(sheet: Stylesheet, *source: Any, **options: Any) -> list[RuleSet]:
        key = (source, frozenset(options.items()), frozenset(sheet._variables.items()))
        if key not in known:
            known[key] = parse(sheet, *source, **options)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


@pytest.fixture(autouse=True)
def _not_every_frame_is_drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody sees them, and they take two fifths of the time: a few are enough to find what can't be drawn. Tests look
    at the rows as they are. Drawn is everything where time is measured, and where whatever comes is to be drawn."""
    if request.node.get_closest_marker("alone") or request.node.path.stem == "test_fuzz":
        return
    draw, frames = Compositor.render_update, WeakKeyDictionary[Compositor, Iterator[int]]()

    def draw_now_and_then(
        compositor: Compositor, full: bool = False, screen_stack: list[Screen[Any]] | None = None, **options: Any
    ) -> object:
        lets_others_be_seen = bool(screen_stack)  # they are drawn together alone
        if not (full or lets_others_be_seen) and next(frames.setdefault(compositor, count())) % DRAWN_FRAMES:
            compositor._dirty_regions.clear()
            return None
        return draw(compositor, full, screen_stack, **options)

    monkeypatch.setattr(Compositor, "render_update", draw_now_and_then)


@pytest.fixture(autouse=True)
def _notices_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until somebody does something, however slow the machine is."""
    monkeypatch.setattr(Notification, "time_left", 3600.0)
    monkeypatch.setattr(Notification, "has_expired", False)


@asynccontextmanager
async def running(
    out_dir: Path,
    size: tuple[int, int] = SIZE,
    ready: bool = True,
    theme: str | None = None,
    notices: bool = False,
    screen_options: ScreenOptions | None = None,
    engine: type[ScriptedEngine] = ScriptedEngine,
    begin: Start | None = None,
    **options: Any,
) -> AsyncIterator[Driver]:
    """A chat on the scripted engine, or a server that is scripted, which gets the other ``options``."""
    engines: list[ScriptedEngine] = []

    def source(emit: Emit) -> ScriptedEngine:
        engines.append(engine(emit, **{"round_seconds": 0.002, **options}))
        return engines[0]

    queue = EventQueue(SessionLog.create())
    app = ChatApp(GenerationSettings(), out_dir, queue, source, theme, begin, screen_options)
    async with app.run_test(size=size, notifications=notices):
        driver = Driver(app, SteadyPilot(app), engines[0], out_dir)
        if ready:
            await driver.until(lambda: driver.screen.chat.reducer.ready is not None)
        yield driver
    queue.log.close()


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """``async with launch(size=(80, 24), ready=True, **scripted_engine_options) as driver``."""

    return partial(running, tmp_path / "out")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def _shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Driver]:
    folder = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFLASH_CHAT_STATE", str(folder / "state"))
        patch.setenv("DFLASH_CHAT_CONFIG", "")
        async with running(folder / "out", **getattr(request.module, "SHARED", {})) as chat:
            await chat.ask_and_wait()
            yield chat


@pytest_asyncio.fixture(loop_scope="module")
async def chat(_shared: Driver) -> Driver:
    """A chat with an answer, which a module's tests share, launched with its ``SHARED``; these leave nothing behind
    that :meth:`Driver.rest` doesn't clear away, and have one loop."""
    await _shared.rest()
    return _shared
