"""When the context fills: said before, a choice when it is full, and what was left out is marked, also in the file."""

from __future__ import annotations

from dataclasses import replace

from dflash_tui.app.screens.asking import AskScreen
from dflash_tui.app.widgets.meters import ContextGauge
from dflash_tui.core.conversation.question_context import messages_of
from dflash_tui.core.sessions.sessions import load_session
from dflash_tui.core.source import Capabilities
from engine.commands import Ask
from support.scripted_engine import ScriptedEngine
from tests.app.conftest import Driver, Launch

ANSWER = "word " * 30


class Counting(ScriptedEngine):
    """A token is a word."""

    capabilities = Capabilities(
        count=lambda ask: len(" ".join([str(ask.prompt), *(message.content for message in ask.messages)]).split())
    )


async def filled(chat: Driver, limit: int = 150) -> None:
    """Three questions, and no room for a fourth."""
    ready = chat.screen.chat.reducer.ready
    assert ready is not None
    for number in range(3):
        await chat.ask_and_wait(f"question {number} " + "more " * 10)
    chat.screen.chat.reducer.ready = replace(ready, max_context=limit)


def contents(ask: Ask) -> list[str]:
    return [message.content.split(" more")[0] for message in ask.messages if message.role != "assistant"]


async def test_the_oldest_go_and_stay_marked(launch: Launch) -> None:
    async with launch(answer=ANSWER, engine=Counting) as chat:
        await filled(chat)
        await chat.ask("the fourth " + "more " * 20)
        assert isinstance(chat.app.screen, AskScreen)
        await chat.pilot.press("d")
        await chat.until(lambda: len(chat.sent(Ask)) == 4 and not chat.screen.chat.busy)
        assert contents(chat.sent(Ask)[3]) == ["question 2", "the fourth"]
        assert "✂ from here on, 2 earlier questions are read no more" in chat.log.text
        assert "question 0" in chat.log.text, "the reader keeps what the model lost"
        turns = load_session(chat.screen.queue.log.path).turns
        assert [message.content.split(" more")[0] for message in messages_of(turns, None)][::2] == [
            "question 2",
            "the fourth",
        ]


async def test_it_is_said_before(launch: Launch) -> None:
    async with launch(answer=ANSWER, engine=Counting) as chat:
        ready = chat.screen.chat.reducer.ready
        assert ready is not None
        await chat.ask_and_wait("one")
        used = chat.screen.gauge_facts().turn.context_length
        assert "full" not in chat.log.text
        chat.screen.chat.reducer.ready = replace(ready, max_context=used + used // 6)
        await chat.ask("two")
        await chat.until(lambda: not chat.screen.chat.busy or isinstance(chat.app.screen, AskScreen))
        if isinstance(chat.app.screen, AskScreen):
            await chat.pilot.press("d", "enter")
            await chat.until(lambda: not chat.screen.chat.busy)
        await chat.until(lambda: "% full: " in chat.log.text)
        chat.screen.draw_gauges()
        gauge = chat.screen.query_one(ContextGauge).compact()
        assert any("$text-warning" in str(span.style) for span in gauge.spans)
        assert " left" in chat.screen.query_one("#status").render().plain
