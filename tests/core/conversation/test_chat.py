from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from dflash_tui.core.conversation.chat import Chat, Queued
from dflash_tui.core.conversation.tree import Tree
from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.sessions.sessions import Conversation
from engine.commands import AUTO, Adjust, Ask, Command, GenerationSettings, Message, Stop
from engine.events import EngineError, EngineReady, Notice, TurnFinished, TurnStarted, TurnStatistics

from ..answers_for_tests import answered

READY = EngineReady("target", "drafter", "cpu", "float32", 16, 4096, 1.0)


@pytest.fixture
def sent() -> list[Command]:
    return []


@pytest.fixture
def chat(sent: list[Command]) -> Chat:
    chat = Chat(GenerationSettings(), sent.append)
    chat.apply(READY)
    return chat


def tree_of(turns: Iterable[Turn]) -> Tree[Turn]:
    tree: Tree[Turn] = Tree()
    for turn in turns:
        tree.add(turn)
    return tree


def answer(chat: Chat, text: str, reason: str = "stop") -> None:
    assert chat.newest is not None
    turn = chat.newest.number
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


def test_no_notice_stands_between_a_question_that_waited_and_its_answer(sent: list[Command]) -> None:
    chat = Chat(GenerationSettings(), sent.append)
    chat.ask("early")
    chat.apply(Notice("It has no drafter."))
    chat.apply(READY)
    chat.apply(Notice("It is slow here."))
    assert not chat.reducer.take_spans()
    answer(chat, "1")
    told = "".join(span.text for span in chat.reducer.take_spans())
    assert told.index("no drafter") < told.index("slow here") and told.count("slow") == 1


def test_a_stop_names_its_turn_and_is_sent_once(chat: Chat, sent: list[Command]) -> None:
    chat.ask("one")
    assert chat.stop() and chat.stop()
    chat.apply(TurnStarted(1, 1, 0, {}))
    assert sent[1:] == [Stop(1)]
    chat.apply(TurnFinished(1, "stopped", ""))
    assert not chat.stopping and not chat.stop()


def test_settings_change_now_and_for_the_next_turn(chat: Chat, sent: list[Command]) -> None:
    chat.ask("one")
    chat.adjust(block_size=8)
    chat.adjust(temperature=0.5)
    assert sent[1:] == [Adjust(block_size=8, turn=1), Adjust(temperature=0.5, turn=1)]
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


# --- versions


def test_another_version_follows_the_same_question(chat: Chat, sent: list[Command]) -> None:
    for question, text in (("one", "1"), ("two", "2")):
        chat.ask(question)
        answer(chat, text)
    assert chat.ask_again(2, GenerationSettings(block_size=4, seed=9)) == 3
    again = sent[-1]
    assert isinstance(again, Ask) and [message.content for message in again.messages] == ["one", "1", "two"]
    assert (again.settings.block_size, again.settings.seed, chat.settings.seed) == (4, 9, 0)
    answer(chat, "second")
    assert chat.tree.version_of(3, "answer") == (2, 2) and chat.answers == ["1", "second"]
    earlier = chat.tree.neighbour(3, "answer", -1)
    assert earlier is not None and earlier.number == 2 and chat.tree.neighbour(2, "answer", -1) is None
    chat.visit(2)
    assert chat.answers == ["1", "2"] and chat.newest is not None and chat.newest.figures == TurnStatistics()


def test_any_question_can_be_asked_in_other_words(chat: Chat, sent: list[Command]) -> None:
    for question, text in (("one", "1"), ("two", "2"), ("three", "3")):
        chat.ask(question)
        answer(chat, text)
    chat.ask("ONE", parent=chat.tree[1].parent)
    assert isinstance(sent[-1], Ask) and [message.content for message in sent[-1].messages] == ["ONE"]
    answer(chat, "I")
    assert chat.answers == ["I"] and chat.tree.version_of(4, "question") == (2, 2)
    chat.visit(1)
    assert chat.answers == ["1", "2", "3"], "back to where that branch was left"
    chat.go(2)
    chat.ask("other")
    answer(chat, "o")
    chat.visit(4)
    chat.visit(1)
    assert chat.answers == ["1", "2", "o"]


def test_a_branch_brings_its_system_prompt(chat: Chat) -> None:
    chat.system = "Be brief."
    chat.ask("one")
    answer(chat, "1")
    chat.system = "Be long."
    chat.ask("one", parent=0)
    answer(chat, "1111")
    chat.go(1)
    assert chat.system == "Be brief."


def test_seeds_of_versions_are_all_different(chat: Chat) -> None:
    chat.ask("one")
    chat.apply(TurnStarted(1, 1, 0, {"seed": 7}))
    chat.apply(TurnFinished(1, "stop", "1"))
    assert chat.next_seed(1) == 8


def test_a_version_that_was_never_sent_leaves_the_path_as_it_was(sent: list[Command]) -> None:
    chat = Chat(GenerationSettings(), sent.append)
    turns = (answered(1, "one", "1"), answered(2, "two", "2", parent=1))
    chat.resume(Conversation(Path("x.jsonl"), "", tree_of(turns), last_turn=2))
    chat.ask("ONE", parent=0)
    assert chat.tree.here == 3 and chat.stop()
    assert chat.tree.here == 2 and chat.answers == ["1", "2"]


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
    chat.queued.append(Queued("two"))
    answer(chat, "1", reason)
    assert chat.next_queued() is None
    assert (chat.take_queued(), chat.queued) == ([Queued("two")], [])


def test_an_older_conversation_goes_on(chat: Chat, sent: list[Command]) -> None:
    chat.ask("other")
    answer(chat, "x")
    turns = (
        answered(3, "old", "answer", system="Be brief."),
        Turn(4, "lost", parent=3),
    )
    chat.resume(Conversation(Path("x.jsonl"), "", tree_of(turns), last_turn=9))
    assert chat.ask("new") == 10
    last = sent[-1]
    assert isinstance(last, Ask)
    assert [message.content for message in last.messages] == ["Be brief.", "old", "answer", "new"]
    answer(chat, "newer")
    chat.go(3)
    assert chat.answers == ["answer"] and chat.system == "Be brief."
