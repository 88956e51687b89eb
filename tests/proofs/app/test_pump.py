"""The frame loop: when it draws."""

from __future__ import annotations

import asyncio
import threading

import pytest

from dflash_tui.app.chat import pump
from dflash_tui.app.chat.pump import IDLE_INTERVAL, FramePump
from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import Happening, StepBatch
from dflash_tui.core.text.spans import Spans
from engine.commands import Ask, GenerationSettings
from engine.events import TurnStarted
from engine.rounds.store import RoundStore
from support.events_for_tests import make_step
from support.scripted_engine import ScriptedEngine
from tests.app.conftest import Launch
from tests.app.pilot import key_event


async def test_the_end_of_an_answer_waits_for_no_frame(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    async with launch(round_seconds=0.03) as chat:
        monkeypatch.setattr(FramePump, "interval", 60.0)
        await chat.ask()
        await chat.until(lambda: not chat.screen.chat.busy and "tokens a round" in chat.log.text)


async def test_after_a_question_nothing_is_drawn_until_its_answer_begins(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine would wait for the interpreter meanwhile, operation by operation."""
    drawn: list[str] = []
    begun = threading.Event()

    def answer_turn(engine: ScriptedEngine, ask: Ask) -> bool:
        begun.wait(60)
        return answer(engine, ask)

    answer = ScriptedEngine.answer_turn
    monkeypatch.setattr(ScriptedEngine, "answer_turn", answer_turn)
    monkeypatch.setattr(pump, "STILL_SECONDS", 3600.0)
    async with launch() as chat:
        display = type(chat.app)._display
        monkeypatch.setattr(type(chat.app), "_display", lambda app, *given: drawn.append("x") or display(app, *given))
        chat.prompt.text = "Write a page"
        await chat.pilot.pause()
        chat.app.post_message(key_event("enter"))
        while not chat.sent(Ask):
            await asyncio.sleep(0)
        asked = len(drawn)
        await asyncio.sleep(3 * IDLE_INTERVAL)
        assert chat.screen.chat.busy and len(drawn) == asked
        begun.set()
        await chat.until(lambda: len(drawn) > asked and "Write a page" in chat.log.text and not chat.app._batch_count)
        await chat.until(lambda: not chat.screen.chat.busy)


async def test_the_gauges_hear_of_a_round_that_came_between_two_looks() -> None:
    """And of nothing twice: rounds that come one by one may all fall between."""
    queue, drawn = EventQueue(SessionLog.nowhere()), list[tuple[list[Happening], bool]]()
    chat = Chat(GenerationSettings(), lambda command: None, lambda: queue.log)
    frames = FramePump(chat, queue, lambda events, gauges: drawn.append((events, gauges)))
    queue.put(TurnStarted(1, 3, 0, {}, "Why?"))
    frames.frame()
    step = make_step(0, 0, index=0)
    queue.put(step)
    frames.frame()  # at once: no look is due
    assert drawn[-1] == ([step], False)
    while not drawn[-1][1]:
        frames.frame()
    assert drawn[-1] == ([step], True)
    frames.frame()
    assert drawn[-1][0] == []
    queue.put(StepBatch(1, RoundStore([step, step]), 0, 1, 2, Spans()))
    frames.frame()
    assert drawn[-1][1], "where a recording jumps to is seen at once"
