"""Asking again, thinking: what the slash commands do to a conversation."""

from __future__ import annotations

from dflash_tui.core.conversation.step_spans import THOUGHT_HEAD
from dflash_tui.core.text.spans import Span
from engine.commands import Ask

from .conftest import Launch

ANSWER = "Four."


def contents(ask: Ask) -> list[str]:
    return [message.content for message in ask.messages]


async def test_a_temperature_has_the_words_of_its_slider(launch: Launch) -> None:
    async with launch(answer=ANSWER) as chat:
        await chat.ask("/temp 0.7")
        await chat.ask("/temp greedy")
        await chat.ask_and_wait("one")
        (asked,) = chat.sent(Ask)
        assert asked.settings.temperature == 0.0 and "takes" not in chat.notices()


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
