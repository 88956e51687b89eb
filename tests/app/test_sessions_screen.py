"""Older conversations on the screen: resume, rename, delete, and what a resumed one looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.app.application import ChatApp
from dflash_tui.app.chat.screen import ChatScreen
from dflash_tui.app.screens.sessions import SessionsScreen
from dflash_tui.core.conversation.start import Start
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.files.places import sessions_directory
from dflash_tui.core.sessions.archive import reopen
from dflash_tui.core.sessions.sessions import load_session
from engine.commands import Ask, GenerationSettings
from support.scripted_engine import ScriptedEngine
from tests.core.sessions.test_archive import write

from .conftest import Driver, Launch


async def open_list(chat: Driver) -> SessionsScreen:
    await chat.pilot.press("ctrl+o")
    assert isinstance(chat.app.screen, SessionsScreen)
    return chat.app.screen


async def test_a_conversation_is_found_and_goes_on(launch: Launch) -> None:
    path = write(sessions_directory(), "about drones", answer="They fly.", at=1)
    write(sessions_directory(), "about boats", at=2)
    async with launch(answer="ok") as chat:
        await chat.ask_and_wait("something else")
        await open_list(chat)
        await chat.pilot.press(*"drones", "enter")
        await chat.until(lambda: chat.app.screen is chat.screen)
        assert "about drones" in chat.log.text and "They fly." in chat.log.text
        assert "something else" not in chat.log.text
        assert "conversation with org/target. demo/gemma4-tiny goes on" in chat.log.text
        await chat.ask_and_wait("and then?")
        assert [message.content for message in chat.sent(Ask)[-1].messages] == [
            "about drones",
            "They fly.",
            "and then?",
        ]
        assert [turn.question for turn in load_session(path).turns] == ["about drones", "and then?"]
        assert load_session(path).target == "demo/gemma4-tiny"


async def test_f7_replays_a_conversation_above_the_chat(launch: Launch) -> None:
    path = write(sessions_directory(), "about drones", answer="They fly.", at=1)
    async with launch(answer="ok") as chat:
        await open_list(chat)
        await chat.pilot.press("f7")
        await chat.until(lambda: isinstance(chat.app.screen, ChatScreen) and chat.app.screen is not chat.screen)
        replay = chat.app.screen
        assert isinstance(replay, ChatScreen)
        await chat.until(lambda: replay.desk.source is not None and replay.desk.source.recording.ended)
        assert replay.desk.source.recording.record.name == path.name
        await chat.pilot.press("escape")
        await chat.until(lambda: chat.app.screen is chat.screen and chat.prompt.has_focus)


async def test_the_open_conversation_is_not_in_the_list(launch: Launch) -> None:
    async with launch(answer="ok") as chat:
        await chat.ask_and_wait("one")
        screen = await open_list(chat)
        assert screen.chosen is None
        await chat.pilot.press("enter", "f2", "ctrl+d", "down")
        assert chat.app.screen is screen


@pytest.mark.parametrize("choose", [False, True])
async def test_a_chat_begins_with_an_older_conversation(tmp_path: Path, choose: bool) -> None:
    path = write(sessions_directory(), "about drones")
    conversation, log = reopen(path)
    begin = Start(choose=True) if choose else Start(conversation=conversation)
    if choose:
        log.close()
    app = ChatApp(
        GenerationSettings(), tmp_path, EventQueue(log), lambda emit: ScriptedEngine(emit, answer="ok"), begin=begin
    )
    async with app.run_test() as pilot:
        chat = Driver(app, pilot, None, tmp_path)  # type: ignore[arg-type]
        if choose:
            await chat.until(lambda: isinstance(app.screen, SessionsScreen))
            return
        await chat.until(lambda: chat.screen.chat.reducer.ready is not None)
        await chat.ask_and_wait("and then?")
        assert "goes on." in chat.log.text and chat.log.text.index("about drones") < chat.log.text.index("and then?")
    log.close()
    assert len(load_session(path).turns) == 2
