"""Asking again, thinking: what the slash commands do to a conversation."""

from __future__ import annotations

from dflash_tui.core.conversation.teller import THOUGHT_HEAD
from dflash_tui.core.sessions.sessions import load_session
from dflash_tui.core.text.spans import Span
from engine.commands import Ask

from .conftest import Driver, Launch

ANSWER = "Four."


def contents(ask: Ask) -> list[str]:
    return [message.content for message in ask.messages]


async def test_retry_asks_the_newest_question_again(launch: Launch) -> None:
    async with launch(answer=ANSWER) as chat:
        await chat.ask_and_wait("one")
        await chat.ask_and_wait("two")
        await chat.ask_and_wait("/retry")
        first, second, again = chat.sent(Ask)
        assert contents(again) == contents(second) == ["one", ANSWER, "two"]
        assert again.turn == 3 and again.settings.seed == second.settings.seed == first.settings.seed
        assert "temperature 0" in chat.notices() and "‹ 2/2 ›" in chat.log.text
        assert chat.log.text.count("two") == 1, "the older answer is behind the mark"
        assert [turn.question for turn in load_session(chat.screen.queue.log.path).turns] == ["one", "two"]
        assert chat.prompt.text == ""


async def test_a_temperature_has_the_words_of_its_slider(launch: Launch) -> None:
    async with launch(answer=ANSWER) as chat:
        await chat.ask("/temp 0.7")
        await chat.ask("/temp greedy")
        await chat.ask_and_wait("one")
        (asked,) = chat.sent(Ask)
        assert asked.settings.temperature == 0.0 and "takes" not in chat.notices()


async def test_retry_at_a_temperature_takes_the_next_seed(launch: Launch) -> None:
    async with launch(answer=ANSWER) as chat:
        await chat.ask("/temp 0.7")
        await chat.ask_and_wait("one")
        await chat.ask_and_wait("/retry")
        first, again = chat.sent(Ask)
        assert again.settings.seed == first.settings.seed + 1 and contents(again) == ["one"]


async def refused(chat: Driver, command: str, why: str) -> None:
    await chat.ask(command)
    assert why in chat.notices() and chat.prompt.text == command


async def test_nothing_is_taken_back_while_an_answer_runs(launch: Launch) -> None:
    async with launch(round_seconds=0.05) as chat:
        await chat.ask("one")
        for command in ("/retry", "/edit"):
            await refused(chat, command, "Esc stops it first")
        assert len(chat.sent(Ask)) == 1


async def test_think_turns_thinking_on_and_off(launch: Launch) -> None:
    async with launch(answer=ANSWER) as chat:
        await chat.ask("/think on")
        await chat.ask_and_wait("one")
        await chat.ask("/think off")
        await chat.ask_and_wait("two")
        assert [ask.settings.thinking for ask in chat.sent(Ask)] == [True, False]
        await refused(chat, "/think hard", "/think takes on|off")


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
