from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.sessions.session_lines import StepText
from dflash_tui.core.sessions.sessions import Conversation, Turn
from engine.commands import AUTO, Adjust, Ask, Command, GenerationSettings, Message, Stop
from engine.events import EngineError, EngineReady, TurnFinished, TurnStarted

READY = EngineReady("target", "drafter", "cpu", "float32", 16, 4096, 1.0)


@pytest.fixture
def sent() -> list[Command]:
    return []


@pytest.fixture
def chat(sent: list[Command]) -> Chat:
    chat = Chat(GenerationSettings(), sent.append)
    chat.apply(READY)
    return chat


def answer(chat: Chat, text: str, reason: str = "stop") -> None:
    turn = chat.next_turn - 1
    chat.apply(TurnStarted(turn, 1, 0, {}))
    chat.apply(TurnFinished(turn, reason, text))  # type: ignore[arg-type]


def test_a_conversation_grows_by_both_sides(chat: Chat, sent: list[Command]) -> None:
    chat.ask("one")
    answer(chat, "1")
    chat.ask("two")
    last = sent[-1]
    assert isinstance(last, Ask) and last.turn == 2
    assert last.messages == (Message("user", "one"), Message("assistant", "1"), Message("user", "two"))


@pytest.mark.parametrize("reason", ["stopped", "error"])
def test_a_question_without_an_answer_leaves_the_conversation(chat: Chat, reason: str) -> None:
    chat.ask("one")
    answer(chat, "", reason)
    assert chat.messages == [] and not chat.busy


def test_a_question_waits_for_the_models(sent: list[Command]) -> None:
    chat = Chat(GenerationSettings(), sent.append)
    chat.ask("early")
    chat.adjust(block_size=4)
    assert sent == [] and chat.waiting
    chat.apply(READY)
    assert [type(command) for command in sent] == [Ask]
    assert isinstance(sent[0], Ask) and sent[0].settings.block_size == 4


def test_a_waiting_question_can_be_taken_back(sent: list[Command]) -> None:
    chat = Chat(GenerationSettings(), sent.append)
    chat.ask("early")
    assert chat.stop()
    chat.apply(READY)
    assert sent == [] and chat.messages == [] and not chat.busy


def test_a_stop_before_the_turn_began_is_kept(chat: Chat, sent: list[Command]) -> None:
    chat.ask("one")
    assert chat.stop() and chat.stop()
    assert sent[1:] == [Stop()]
    chat.apply(TurnStarted(1, 1, 0, {}))
    assert sent[1:] == [Stop(), Stop()]
    chat.apply(TurnFinished(1, "stopped", ""))
    assert not chat.stopping and not chat.stop()


def test_settings_change_now_and_for_the_next_turn(chat: Chat, sent: list[Command]) -> None:
    chat.ask("one")
    chat.adjust(block_size=8)
    chat.adjust(temperature=0.5)
    assert sent[1:] == [Adjust(block_size=8), Adjust(temperature=0.5)]
    answer(chat, "1")
    chat.adjust(block_size=6)
    assert len(sent) == 3
    chat.ask("two")
    last = sent[-1]
    assert isinstance(last, Ask)
    assert (last.settings.block_size, last.settings.temperature) == (6, 0.5)


def test_settings_out_of_range_change_nothing(chat: Chat, sent: list[Command]) -> None:
    with pytest.raises(ValueError, match="block size"):
        chat.adjust(block_size=99)
    assert chat.settings.block_size == AUTO and sent == []


def test_the_end_of_the_engine_ends_the_question(chat: Chat) -> None:
    chat.ask("one")
    chat.apply(EngineError("generation", "out of memory", fatal=True))
    assert not chat.busy


# --- taking back


def test_taking_back_undoes_question_and_answer(chat: Chat, sent: list[Command]) -> None:
    for question, text in (("one", "1"), ("two", "2")):
        chat.ask(question)
        answer(chat, text)
    exchange = chat.take_back()
    assert exchange is not None and (exchange.turn, exchange.question) == (2, "two")
    assert chat.messages == [Message("user", "one"), Message("assistant", "1")] and chat.answers == ["1"]
    chat.ask("two again")
    assert isinstance(sent[-1], Ask) and sent[-1].turn == 3
    assert [message.content for message in sent[-1].messages] == ["one", "1", "two again"]


def test_taking_back_a_question_without_an_answer_leaves_the_one_before(chat: Chat) -> None:
    chat.ask("one")
    answer(chat, "1")
    chat.ask("too long")
    answer(chat, "", "error")
    exchange = chat.take_back()
    assert exchange is not None and exchange.question == "too long"
    assert [message.content for message in chat.messages] == ["one", "1"]
    assert (exchange := chat.take_back()) is not None and exchange.question == "one"
    assert chat.messages == [] and chat.answers == [] and chat.take_back() is None


def test_a_question_that_was_never_sent_cannot_be_taken_back(sent: list[Command]) -> None:
    chat = Chat(GenerationSettings(), sent.append)
    chat.ask("early")
    chat.stop()
    assert chat.take_back() is None


def test_a_full_context_keeps_the_conversation(chat: Chat) -> None:
    """The answer as far as it came stays, and a question that doesn't fit any more changes nothing."""
    chat.ask("one")
    answer(chat, "as far as it c", "context")
    chat.ask("two")
    answer(chat, "", "error")
    assert chat.messages == [Message("user", "one"), Message("assistant", "as far as it c")] and not chat.busy


@pytest.mark.parametrize("reason", ["stopped", "error", "context"])
def test_waiting_questions_stay_when_the_answer_did_not_end_by_itself(chat: Chat, reason: str) -> None:
    chat.ask("one")
    chat.queued.append("two")
    answer(chat, "1", reason)
    assert chat.next_queued() is None
    assert (chat.take_queued(), chat.queued) == (["two"], [])


def test_an_older_conversation_goes_on(chat: Chat, sent: list[Command]) -> None:
    chat.ask("other")
    answer(chat, "x")
    turns = (
        Turn(3, "old", system="Be brief.", rounds=[StepText("an"), StepText("swer")], reason="stop"),
        Turn(4, "lost"),
    )
    chat.resume(Conversation(Path("x.jsonl"), "", None, None, turns, last_turn=9))
    assert chat.ask("new") == 10
    last = sent[-1]
    assert isinstance(last, Ask)
    assert [message.content for message in last.messages] == ["Be brief.", "old", "answer", "new"]
    answer(chat, "newer")
    assert chat.take_back() is not None and chat.take_back() is not None
    assert chat.messages == [] and chat.take_back() is None
