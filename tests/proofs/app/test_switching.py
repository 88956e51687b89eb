"""Another model in the same chat: the conversation stays, and a model that can't be had brings back the one before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dflash_tui.app.application import ChatApp
from dflash_tui.core.conversation.start import Models, Start
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.failures import Failure
from dflash_tui.core.sessions.sessions import SessionLog, load_session
from dflash_tui.core.source import Emit, SourceFactory
from engine.commands import Close, GenerationSettings
from engine.events import EngineError
from support.scripted_engine import ScriptedEngine
from tests.app.conftest import Driver
from tests.app.pilot import SteadyPilot

BROKEN = EngineError("weights", "There is no such model.", "Look at its name.", fatal=True)


@asynccontextmanager
async def switchable(folder: Path) -> AsyncIterator[tuple[Driver, list[tuple[str, ScriptedEngine]]]]:
    """A chat with ``first``; every other model answers with its name, and ``broken`` can't be had."""
    engines: list[tuple[str, ScriptedEngine]] = []

    def made(name: str, drafter: str = "") -> SourceFactory:
        if name == "nonsense here":
            raise Failure("There is no model called that.", "Choose another.")

        def create(emit: Emit) -> ScriptedEngine:
            error = BROKEN if name == "broken" else None
            loading = 0.0 if name == "first" else 1.0  # so long that a question waits for it
            engine = ScriptedEngine(
                emit, answer=f"{name} {drafter}.", round_seconds=0.002, load_seconds=loading, load_error=error
            )
            engines.append((name, engine))
            return engine

        return create

    queue = EventQueue(SessionLog.create())
    begin = Start(models=Models(made, lambda: ("first", "second", "broken"), "first"))
    app = ChatApp(GenerationSettings(), folder, queue, made("first"), begin=begin)
    async with app.run_test(size=(120, 36)):
        chat = Driver(app, SteadyPilot(app), engines[0][1], folder)
        await chat.until(lambda: chat.screen.chat.reducer.ready is not None)
        yield chat, engines
    queue.log.close()


async def test_the_conversation_goes_on_with_another_model(tmp_path: Path) -> None:
    async with switchable(tmp_path) as (chat, engines):
        await chat.ask_and_wait("one")
        await chat.pilot.press(*"/model se", "tab")
        assert chat.prompt.text == "/model second"
        await chat.pilot.press("enter")
        await chat.ask_and_wait("two")
        await chat.until(lambda: len(engines) == 2 and not chat.screen.chat.busy)
        assert any(isinstance(command, Close) for command in engines[0][1].commands), "the first was let go"
        (asked,) = engines[1][1].asked
        assert [message.content for message in asked.messages] == ["one", "first .", "two"]
        told, question = (chat.log.text.index(words) for words in ("answers from here on", "\ntwo\n"))
        assert told < question < chat.log.text.index("second ."), "nothing stands between a question and its answer"
        await chat.ask("/model -")
        await chat.until(lambda: len(engines) == 3 and chat.screen.chat.reducer.ready is not None)
        assert engines[2][0] == "first"
        assert load_session(chat.screen.queue.log.path).damaged == 0
