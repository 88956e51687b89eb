"""The target alone is timed while nobody wants anything, and answers are held against it."""

from __future__ import annotations

from dataclasses import replace

from dflash_tui.app.glyphs import large_number
from dflash_tui.app.widgets.gauges import RateGauge
from dflash_tui.core.conversation.start import Start
from dflash_tui.core.desk.alone import QUESTION
from dflash_tui.core.desk.event_queue import ASIDE
from dflash_tui.core.sessions.sessions import load_session
from engine.commands import Stop

from .conftest import Driver, Launch

TIMED = Start(time_alone=True)


def asked_alone(chat: Driver) -> int:
    return sum(ask.turn == ASIDE for ask in chat.engine.asked)


async def test_the_speed_up_is_known_without_asking_for_it(launch: Launch) -> None:
    async with launch(begin=TIMED) as chat:
        reducer = chat.screen.chat.reducer
        await chat.until(lambda: reducer.plain_ms is not None)
        assert not reducer.turns and not chat.log.text.count(QUESTION), "nothing of it is part of the chat"
        await chat.ask_and_wait("one")
        gauge = chat.screen.query_one(RateGauge)
        await chat.until(lambda: gauge.facts.turn.finished and gauge.facts.speedup is not None)
        assert large_number(f"{gauge.facts.speedup:.1f}×")[0] in gauge.render().plain
        alone, asked = chat.engine.asked
        assert not alone.settings.speculation and [message.content for message in asked.messages] == ["one"]
        (turn,) = load_session(chat.screen.queue.log.path).turns
        assert turn.question == "one"
        reducer.turn.by = replace(reducer.ready, target="another")
        assert chat.screen.gauge_facts().speedup is None, "another model's answer is not held against this target"


async def test_whoever_types_or_asks_comes_first(launch: Launch) -> None:
    async with launch(begin=TIMED, round_seconds=0.02, answer="word " * 150) as chat:
        await chat.until(lambda: asked_alone(chat) == 1)
        await chat.pilot.press("h")
        assert chat.sent(Stop), "a key ends it"
        await chat.ask_and_wait("one")
        assert chat.screen.chat.reducer.turn.text and chat.screen.chat.tree.path[-1].answer
        assert chat.screen.gauge_facts().alone_pending, "the gauge says that it is still to come"
        await chat.until(lambda: asked_alone(chat) == 2)
        assert chat.engine.asked[-1].messages[0].content == "one", "behind the conversation"
        await chat.ask("two")
        await chat.until(lambda: not chat.screen.chat.busy and len(chat.screen.chat.tree.path) == 2)
        assert chat.screen.chat.tree.path[-1].answer, "what was asked meanwhile is answered"


async def test_a_source_that_was_not_decoded_here_is_not_timed(launch: Launch) -> None:
    async with launch(begin=TIMED) as chat:
        reducer, desk = chat.screen.chat.reducer, chat.screen.desk
        reducer.ready, reducer.plain_ms = replace(reducer.ready, dialect="llama.cpp b1"), None
        before = asked_alone(chat)
        desk.alone.look()
        desk.alone._quiet_since = 0.0
        assert not desk.alone.look() and asked_alone(chat) == before and not desk.alone.pending
