"""Asking at a desk: the queue, files, what no longer fits, and another version of what was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.core.sessions.sessions import load_session
from dflash_tui.core.source import Capabilities
from engine.errors import UsageFailure
from engine.events import EngineError

from .conftest import ANSWER, READY, Sit

LONG = " more" * 20
WORDS = Capabilities(
    count=lambda ask: len(" ".join([str(ask.prompt or ""), *(each.content for each in ask.messages)]).split())
)
"""A token is a word."""


def test_questions_wait_for_the_answer_and_a_stop_gives_them_back(sit: Sit) -> None:
    seat = sit()
    seat.source.holds = True
    seat.type("one", "two")
    assert [each.text for each in seat.desk.chat.queued] == ["two"] and ("queue", 0) in seat.face.changes
    seat.source.answer()
    seat.hear()
    assert [ask.messages[-1].content for ask in seat.source.asked] == ["one", "two"], "it was asked by itself"
    seat.type("three", "four")
    assert seat.desk.stop()
    assert seat.face.given_back == ["three", "four"] and not seat.desk.chat.queued
    seat.hear()
    assert not seat.desk.stop()


def test_a_question_that_comes_back_brings_its_file_as_it_was(sit: Sit, tmp_path: Path) -> None:
    seat, note = sit(), tmp_path / "note.txt"
    note.write_text("as it was")
    seat.source.holds = True
    seat.type("one", f"What is in @{note}?")
    assert seat.desk.stop()
    note.write_text("changed meanwhile")
    seat.hear()
    seat.type(*seat.face.given_back)
    assert "as it was" in seat.source.asked[-1].messages[-1].content
    seat.source.answer()
    seat.type(f"And now, in @{note}?")
    assert "changed meanwhile" in seat.source.asked[-1].messages[-1].content


def test_a_conversation_begun_while_a_model_loads_knows_the_model(sit: Sit) -> None:
    """The model may be ready on its own thread before the screen has heard of it."""
    seat = sit(late=True)
    seat.source.come()
    seat.desk.new()
    seat.hear()
    seat.type("one")
    conversation = load_session(seat.queue.log.path)
    assert (conversation.target, len(conversation.turns)) == (READY.target, 1)


def test_a_question_before_the_models_are_there_is_taken_back_unsent(sit: Sit) -> None:
    seat = sit(error=EngineError("weights", "Truncated.", "", fatal=True))
    assert "can't answer" in seat.type("hello?") and not seat.source.asked
    assert not seat.queue.log.started, "nothing was asked, nothing is kept"


def test_a_question_that_waits_for_the_models_is_taken_back(sit: Sit) -> None:
    seat = sit(late=True)
    seat.type("one")
    assert seat.desk.chat.waiting and seat.desk.stop()
    assert ("withdrawn", 0) in seat.face.changes and not seat.desk.chat.tree
    seat.source.come()
    seat.hear()
    assert not seat.source.asked


def test_the_same_question_again_has_another_seed_or_says_that_it_would_be_the_same(sit: Sit) -> None:
    seat = sit()
    assert "/temp 0.7" in seat.type("one", "/retry")
    seat.type("/temp 0.7", "/retry")
    seat.type("/retry 1 block 4 temp 0.5")
    settings = [ask.settings for ask in seat.source.asked]
    assert [each.seed for each in settings] == [0, 0, 1, 1]
    assert (settings[-1].block_size, settings[-1].temperature) == (4, 0.5)
    assert seat.desk.chat.settings.temperature == 0.7, "they were for that answer alone"
    assert len(seat.desk.chat.tree.versions(1, "answer")) == 4
    assert "no value" in seat.type("/retry block") and "There is no question" in seat.type("/retry 9")


def test_an_edited_question_is_another_version_with_words_or_in_the_faces_own_way(sit: Sit) -> None:
    seat = sit()
    seat.type("one", "two", "/edit 1 ONE")
    assert [each.question for each in seat.desk.chat.tree.path] == ["ONE"]
    seat.type("/edit other words")
    assert [each.question for each in seat.desk.chat.tree.path] == ["other words"]
    seat.type("/edit 2")
    assert seat.face.reworded == [2]
    seat.desk.editing = 2
    seat.type("TWO")
    assert [each.question for each in seat.desk.chat.tree.path] == ["one", "TWO"] and seat.desk.editing is None
    seat.source.holds = True
    assert "An answer is on its way" in seat.type("three", "/edit 1 again", "/retry", "/new", "/go 1")


def test_files_go_with_a_question_and_are_remembered_when_they_have_gone(sit: Sit, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("red\n")
    seat = sit(capabilities=WORDS)
    seat.type(f"What is in @{notes}?")
    assert "red" in seat.source.asked[0].messages[-1].content
    notes.unlink()
    seat.type(f"Again: @{notes}")
    assert "red" in seat.source.asked[1].messages[-1].content
    assert "There is no file" in seat.type(f"@{tmp_path}/gone.txt") and len(seat.source.asked) == 2
    assert "There is no file nope.txt" in seat.type("what is @nope.txt?") and len(seat.source.asked) == 3
    assert "red" in seat.type("/files")


def test_a_question_that_waits_keeps_its_files_as_they_were(sit: Sit, tmp_path: Path) -> None:
    seat, notes = sit(), tmp_path / "notes.txt"
    seat.source.holds = True
    seat.type("one")
    for animal in ("Cats", "Dogs"):  # the same words, another file by now
        notes.write_text(f"{animal} sleep.")
        seat.type(f"two @{notes}")
    notes.unlink()
    for _ in range(3):
        seat.source.answer()
        seat.hear()
    asked = [ask.messages[-1].content for ask in seat.source.asked[1:]]
    assert "Cats sleep." in asked[0] and "Dogs sleep." in asked[1]


@pytest.mark.parametrize("way", ["drop", "new", None])
def test_what_no_longer_fits_is_asked_as_the_user_chooses(sit: Sit, way: str | None) -> None:
    seat = sit(capabilities=WORDS)
    seat.type(f"one{LONG}", f"two{LONG}", f"three{LONG}")
    seat.limit(100)
    seat.face.choices = [way]
    first = seat.queue.log.path
    seat.type(f"four{LONG}")
    (question,) = seat.face.asked
    assert [each.value for each in question.ways] == ["drop", "new"] and not question.wanted
    asked = seat.source.asked[-1].messages
    if way is None:
        assert seat.face.given_back == [f"four{LONG}"] and len(seat.source.asked) == 3
    elif way == "new":
        assert seat.queue.log.path != first and asked[0].role == "system" and ANSWER.strip() in asked[0].content
        assert [each.question for each in seat.desk.chat.tree.path] == [f"four{LONG}"]
    else:
        assert not any(each.content.startswith("one") for each in asked)
        kept = load_session(first).turns
        assert len(kept) == 4 and kept[3].attached.left_out


def test_what_a_prompt_took_is_what_the_next_is_measured_by(sit: Sit) -> None:
    """Where the source counts no tokens: 40 it said of 2,000 letters, so 3,000 are few enough for 300."""
    seat = sit()
    seat.type("x" * 2000)
    seat.limit(300)
    seat.type("y" * 3000)
    assert len(seat.source.asked) == 2


def test_where_nobody_can_be_asked_the_oldest_go_or_nothing_is_asked(sit: Sit) -> None:
    for policy, count in (("drop", 3), ("stop", 2)):
        seat = sit(capabilities=WORDS, when_full=policy)
        seat.type(f"one{LONG}", f"two{LONG}")
        seat.limit(70)
        said = seat.type(f"three{LONG}")
        assert len(seat.source.asked) == count and not seat.face.asked
        assert ("left out" if policy == "drop" else "--when-full drop") in said


def test_a_question_that_is_too_long_by_itself_and_a_context_that_is_nearly_full(sit: Sit) -> None:
    seat = sit(capabilities=WORDS)
    seat.limit(30)
    assert "--context" in seat.type(LONG * 2) and not seat.source.asked
    seat.limit(50)
    said = seat.type("one")
    assert "The context is 82% full" in said and "you choose" in said
    assert "full" not in seat.type("two"), "it is said once"


def test_what_can_not_be_done_is_a_sentence_whoever_says_it(sit: Sit, monkeypatch: pytest.MonkeyPatch) -> None:
    seat = sit(capabilities=Capabilities(refused={"ask": "Nothing can be asked of a recording."}))
    assert "of a recording" in seat.type("one", "/retry", "/new")

    def refuse(*_: object) -> None:
        raise UsageFailure("There is no such thing.", "Try another.")

    other = sit()
    monkeypatch.setattr(other.desk, "new", refuse)
    assert "There is no such thing." in other.type("/new")
