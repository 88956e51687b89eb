"""A replay on the screen, driven by Textual's pilot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from dflash_tui.app.application import ChatApp
from dflash_tui.app.chat.screen import ChatScreen
from dflash_tui.app.widgets.rounds.replay_bar import ReplayBar
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.replay.replay_source import FASTEST, ReplaySource
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.sources import replay_source
from engine.commands import GenerationSettings


@dataclass
class Replaying:
    app: ChatApp
    pilot: Pilot[None]

    @property
    def screen(self) -> ChatScreen:
        return self.app.chat_screen

    @property
    def source(self) -> ReplaySource:
        assert isinstance(self.screen.desk.source, ReplaySource)
        return self.screen.desk.source

    @property
    def bar(self) -> str:
        return self.screen.query_one(ReplayBar).render().plain

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.01)
        await self.pilot.pause()

    async def ended(self) -> None:
        await self.until(lambda: self.source.ended and not self.screen.chat.busy and not self.waiting)

    @property
    def waiting(self) -> bool:
        """Events are on their way to the reducer."""
        trace = self.source.record
        turns = self.screen.chat.reducer.turns
        return trace is None or sum(len(turn.rounds) for turn in turns) < self.source.played


@asynccontextmanager
async def replaying(
    path: Path, size: tuple[int, int] = (120, 36), pace: float = FASTEST, **options: Any
) -> AsyncIterator[Replaying]:
    queue = EventQueue(SessionLog.nowhere())
    app = ChatApp(GenerationSettings(), path.parent, queue, replay_source(path, pace), **options)
    async with app.run_test(size=size) as pilot:
        yield Replaying(app, pilot)
