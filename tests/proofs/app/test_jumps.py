"""Going anywhere in a replay, driven by Textual's pilot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dflash_tui.app.application import ChatApp
from dflash_tui.app.widgets.rounds.replay_bar import ReplayBar
from dflash_tui.app.widgets.token_log import TokenLog
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.replay.bundled import find_recording
from dflash_tui.core.replay.recording import read_recording
from dflash_tui.core.replay.replay_source import FASTEST, ReplaySource
from dflash_tui.core.rounds.travel import Position
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.settings.config import ScreenOptions
from dflash_tui.core.source import Happening
from engine.commands import GenerationSettings
from engine.events import Step
from tests.app.replaying import Replaying, replaying

SLOW = 0.05

STILL = ScreenOptions(reduced_motion=True)
"""The newest block has no ground of its own, which would be gone after a jump."""


class Played(ReplaySource):
    """Hands out so many steps of a trace, each for itself, and what comes before them; then it stands."""

    def __init__(self, path: Path, emit: Callable[[Happening], None], steps: int) -> None:
        super().__init__(path, emit)
        self._steps = steps

    def _main(self) -> None:
        trace = read_recording(self.path)
        for event in trace.events():
            if self.played == self._steps < len(trace.steps):
                return
            self.played += isinstance(event, Step)
            self._emit(event)


@asynccontextmanager
async def played(path: Path, steps: int) -> AsyncIterator[Replaying]:
    queue = EventQueue(SessionLog.nowhere())
    app = ChatApp(
        GenerationSettings(), path.parent, queue, lambda emit: Played(path, emit, steps), screen_options=STILL
    )
    async with app.run_test(size=(120, 36)) as pilot:
        replay = Replaying(app, pilot)
        await replay.until(lambda: num_rounds(replay) == steps)
        yield replay


def num_rounds(replay: Replaying) -> int:
    return sum(len(turn.rounds) for turn in replay.screen.chat.reducer.turns)


def shown(replay: Replaying) -> list[object]:
    """What the transcript and the gauges say, and in which colours."""
    log, viewer = replay.screen.query_one(TokenLog), replay.screen.viewer
    return [log.text, log.rows, [log.render_line(y) for y in range(log.size.height)], viewer.snapshot, viewer.step]


async def paused(replay: Replaying) -> None:
    await replay.until(lambda: replay.source.played >= 1 and not replay.waiting)
    await replay.pilot.press("space")
    assert not replay.source.playing


@pytest.mark.parametrize("part", [0.3, 0.8, 1.0])
async def test_a_jump_shows_what_playing_shows(part: float) -> None:
    """Three answers with their remarks: ahead, and back from the end."""
    path = find_recording("maths")
    steps = round(part * len(read_recording(path).steps))
    async with played(path, steps) as replay:
        await replay.pilot.pause()
        expected = shown(replay)
    async with replaying(path, pace=SLOW, screen_options=STILL) as replay:
        await paused(replay)
        for wanted in (steps, len(replay.source.record.steps), 5, steps):
            replay.source.seek(wanted)
            replay.screen.pump.frame()
            assert num_rounds(replay) == wanted
        await replay.pilot.pause()
        assert shown(replay) == expected


async def test_playing_goes_on_from_where_the_user_looks() -> None:
    path = find_recording("html")
    async with replaying(path, pace=SLOW) as replay:
        await paused(replay)
        await replay.pilot.press("end")
        await replay.ended()
        whole = replay.screen.query_one(TokenLog).text
        replay.screen.viewer.visit(Position(1, 40))
        await replay.pilot.press("space")
        assert replay.source.playing and replay.screen.viewer.position is None
        assert 41 <= replay.source.played < 60 and not replay.source.ended
        assert len(replay.screen.query_one(TokenLog).text) < len(whole)
        replay.source.set_pace(FASTEST)
        await replay.ended()
        assert replay.screen.query_one(TokenLog).text == whole
        replay.source.set_pace(SLOW)
        replay.screen.query_one(ReplayBar).focus()
        await replay.pilot.press("space")
        assert replay.source.played < 110, "from the start again"
