"""The frame loop: when it draws."""

from __future__ import annotations

import asyncio

import pytest

from dflash_tui.app.event_queue import EventQueue
from dflash_tui.app.pump import FramePump
from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.sessions.sessions import SessionLog
from engine.commands import GenerationSettings

from .conftest import Launch


async def test_the_end_of_an_answer_waits_for_no_frame(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    async with launch(round_seconds=0.03) as chat:
        monkeypatch.setattr(FramePump, "_interval", 60.0)
        await chat.ask()
        await chat.until(lambda: not chat.screen.chat.busy and "acceptance length" in chat.log.text)


async def test_a_hurried_frame_comes_as_soon_as_the_terminal_took_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FramePump, "_interval", 60.0)
    full, drawn = True, asyncio.Event()
    chat = Chat(GenerationSettings(), send=lambda _command: None)
    pump = FramePump(chat, EventQueue(SessionLog.nowhere()), lambda *_: drawn.set(), lambda: full)
    running = asyncio.create_task(pump.run())
    pump.hurry()
    await asyncio.sleep(0.05)
    assert not drawn.is_set()
    full = False
    await asyncio.wait_for(drawn.wait(), 5)
    running.cancel()
