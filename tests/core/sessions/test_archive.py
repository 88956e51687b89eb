"""Finding, naming, deleting and reading older conversations."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dflash_tui.core.sessions.archive import (
    ArchiveError,
    conversation_markdown,
    find_session,
    list_sessions,
    open_session,
    reopen,
    reopen_latest,
)
from dflash_tui.core.sessions.sessions import SUFFIX, SessionLog, append_title, load_session
from engine.events import EmittedToken, EngineReady, Step, TurnFinished


def write(
    directory: Path, *questions: str, answer: str = "Four.", at: float = 0.0, reason: str | None = "stop"
) -> Path:
    """A conversation on disk, last changed ``at`` seconds after the epoch."""
    log = SessionLog.create(directory)
    log.record(EngineReady("org/target", "org/drafter", "cpu", "float32", 16, 4096, 1.0))
    for turn, question in enumerate(questions, start=1):
        log.user(turn, question)
        log.record(Step(turn, 0, 0.1, (), 0, (EmittedToken(1, answer, "plain"),), 1, 0.0, 1.0, 1.0, 9, 16, 0.0))
        if reason is not None:
            log.record(TurnFinished(turn, reason, answer))  # type: ignore[arg-type]
    log.close()
    os.utime(log.path, (at, at))
    return log.path


def test_the_list_has_the_latest_first_and_says_what_was_asked(tmp_path: Path) -> None:
    old, new = write(tmp_path, "two\nand two?", "more", at=1), write(tmp_path, "a page", at=2)
    (tmp_path / "notes.jsonl").write_text("hello\n")
    first, second = list_sessions(tmp_path)
    assert (first.path, second.path) == (new, old)
    assert (second.name, second.questions, second.target) == ("two and two?", ("two and two?", "more"), "org/target")


def test_questions_that_were_taken_back_are_not_listed(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    for turn in (1, 2, 3):
        log.user(turn, f"question {turn}")
        log.take_back(turn)
    log.close()
    assert list_sessions(tmp_path)[0].questions == ()
    assert load_session(log.path).turns == ()


def test_a_title_takes_the_place_of_the_first_question(tmp_path: Path) -> None:
    path = write(tmp_path, "question")
    append_title(path, "Sums")
    assert list_sessions(tmp_path)[0].name == load_session(path).name == "Sums"
    append_title(path, "")
    assert list_sessions(tmp_path)[0].name == load_session(path).name == "question"


def test_a_title_while_another_window_writes(tmp_path: Path) -> None:
    path = write(tmp_path, "question")
    log = SessionLog.resume(path)
    append_title(path, "Sums")
    log.user(2, "more")
    log.close()
    assert (load_session(path).title, len(load_session(path).turns)) == ("Sums", 2)


@pytest.mark.parametrize(
    ("words", "found"), [("", True), ("PAGE two", True), ("org/target", True), ("sums", True), ("three", False)]
)
def test_every_word_must_match_somewhere(tmp_path: Path, words: str, found: bool) -> None:
    append_title(write(tmp_path, "one page", "two pages"), "Sums")
    assert list_sessions(tmp_path)[0].matches(words) is found


def test_an_id_may_be_cut_short(tmp_path: Path) -> None:
    paths = [write(tmp_path, "a"), write(tmp_path, "b")]
    for path in paths:
        assert find_session(path.stem, tmp_path) == find_session(path.stem[-6:], tmp_path) == path
        assert find_session(str(path), tmp_path / "elsewhere") == path
    with pytest.raises(ArchiveError, match="2 conversations"):
        find_session("T", tmp_path)
    for nothing in ("zzz", "", "../secret"):
        with pytest.raises(ArchiveError, match="no conversation"):
            find_session(nothing, tmp_path)


def test_the_latest_conversation_that_can_be_read_goes_on(tmp_path: Path) -> None:
    def latest() -> Path:
        conversation, log = reopen_latest(tmp_path)
        log.close()
        return conversation.path

    with pytest.raises(ArchiveError, match="no conversation to continue"):
        latest()
    old, new = write(tmp_path, "a", at=5), write(tmp_path, "b", at=4)
    assert latest() == old and new.exists()
    (tmp_path / f"empty{SUFFIX}").touch()
    (tmp_path / f"lost{SUFFIX}").symlink_to(tmp_path / "nowhere")
    assert latest() == old, "what holds nothing is nothing to go on with"
    (tmp_path / f"strange{SUFFIX}").write_text("nonsense\n")
    conversation, log = reopen_latest(tmp_path)
    log.close()
    assert conversation.path == old and "strange" in conversation.passed_over[0]
    for path in (old, new):
        path.unlink()
    with pytest.raises(ArchiveError, match="strange"):
        latest()


def test_a_conversation_goes_on_in_its_own_file(tmp_path: Path) -> None:
    path = write(tmp_path, "one")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type": "text", "turn": 1, "answ')
    conversation, log = reopen(path)
    assert path.read_bytes() == whole, "the line that was cut is gone"
    log.record(EngineReady("org/other", None, "cpu", "float32", 1, 4096, 1.0))
    log.user(conversation.last_turn + 1, "two", "Be brief.")
    log.close()
    again = load_session(path)
    assert [turn.question for turn in again.turns] == ["one", "two"]
    assert (again.target, again.system, again.last_turn) == ("org/other", "Be brief.", 2)
    assert path.read_bytes().startswith(whole)


@pytest.mark.parametrize(
    "content",
    ["", "hello\n", '{"type": 1}\n', '{"type": "session", "version": 3}\n',
     '{"type": "session", "version": 99, "created": ""}\n'],
)  # fmt: skip
def test_what_is_no_conversation_is_told(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(content)
    with pytest.raises(ArchiveError) as caught:
        open_session(path)
    assert caught.value.hint and list_sessions(tmp_path) == []
    with pytest.raises(ArchiveError, match="can't be read"):
        open_session(tmp_path / "missing.jsonl")


def test_markdown_quotes_the_questions_and_keeps_the_answers_verbatim(tmp_path: Path) -> None:
    answer = "```python\nprint(1)\n```\n"
    path = write(tmp_path, "a\n\nb", answer=answer)
    text = conversation_markdown(load_session(path))
    assert text.startswith("# a b\n\n") and "org/target + org/drafter" in text
    assert f"> a\n>\n> b\n\n{answer}" in text


@pytest.mark.parametrize(
    ("reason", "said"), [("stopped", "(stopped)"), (None, "(cut short)"), ("length", "(cut short)")]
)
def test_markdown_says_that_an_answer_is_not_whole(tmp_path: Path, reason: str | None, said: str) -> None:
    assert said in conversation_markdown(load_session(write(tmp_path, "one", reason=reason)))
