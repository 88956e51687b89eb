"""Waiting questions, undoing an edit, rendered answers, notices, and the way out while the models load."""

from __future__ import annotations

import pytest
from textual.widgets._toast import Toast

from dflash_tui.app.widgets.gauges import Gauge
from dflash_tui.app.widgets.queued import QueuedQuestions
from dflash_tui.app.widgets.rendered import RenderedView
from dflash_tui.app.widgets.rounds.round_strip import RoundStrip
from dflash_tui.core.conversation.step_spans import THOUGHT_HEAD
from dflash_tui.core.text.spans import Span
from engine.commands import Ask

from .conftest import Driver, Launch

LONG = "word " * 400


def questions(chat: Driver) -> list[str]:
    return [ask.messages[-1].content for ask in chat.sent(Ask)]


async def test_questions_wait_for_the_answer_before_them(launch: Launch) -> None:
    async with launch(answer=LONG, holds=True) as chat:
        for text in ("one", "two", "three"):
            await chat.ask(text)
        queued = chat.screen.query_one(QueuedQuestions)
        assert questions(chat) == ["one"] and queued.questions == ("two", "three") and queued.display
        chat.engine.holds = False
        await chat.until(lambda: len(chat.sent(Ask)) == 3 and not chat.screen.chat.busy)
        assert questions(chat) == ["one", "two", "three"] and not queued.display
        assert len(chat.sent(Ask)[2].messages) == 5


async def test_asking_goes_back_to_the_tokens(launch: Launch) -> None:
    async with launch(answer="**bold**") as chat:
        await chat.ask_and_wait("one")
        await chat.pilot.press("ctrl+t")
        await chat.until(lambda: chat.screen.query_one(RenderedView).display)
        await chat.ask_and_wait("two")
        await chat.until(lambda: not chat.screen.query_one(RenderedView).display)
        assert chat.log.display and chat.log.text.count("**bold**") == 2


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 60)])
async def test_one_notice_at_a_time_and_it_lies_over_nothing(launch: Launch, size: tuple[int, int]) -> None:
    async with launch(size=size, answer="ok", notices=True) as chat:
        await chat.ask_and_wait("one")
        for number in range(3):
            chat.screen.notify(f"notice {number}\n" * 4, timeout=60)
        await chat.until(lambda: [toast.region.area > 0 for toast in chat.screen.query(Toast)] == [True])
        (toast,) = chat.screen.query(Toast)
        assert "notice 2" in chat.notices() and "notice 1" not in chat.notices()
        assert toast.region.bottom == chat.screen.query_one("#ask").region.y, "nothing is left of those before"
        for widget in (*chat.screen.query(Gauge), chat.screen.query_one(RoundStrip), chat.log, chat.prompt):
            assert not widget.region.overlaps(toast.region), widget


async def test_escape_twice_leaves_while_the_models_load(launch: Launch) -> None:
    async with launch(ready=False, load_seconds=8) as chat:
        await chat.pilot.press("escape")
        assert "Esc again cancels loading" in chat.notices() and chat.app.is_running
        await chat.pilot.press("escape")
        await chat.until(lambda: chat.app._exit)


async def test_thoughts_fold_away_and_come_back(launch: Launch) -> None:
    async with launch() as chat:
        chat.log.append([Span(THOUGHT_HEAD, "note"), Span("Let me see.", "thought"), Span("\n\n", "thought")])
        chat.log.append([Span("It is four.", "plain")])
        shown = chat.log.text
        assert "Let me see." in shown
        await chat.pilot.press("alt+h")
        assert chat.log.text.endswith(f"{THOUGHT_HEAD}It is four.")
        await chat.pilot.press("alt+h")
        assert chat.log.text == shown
