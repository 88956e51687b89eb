"""Trees on disk: every version comes back, and a file that was damaged loses only what can't be read."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.core.sessions.archive import list_sessions
from dflash_tui.core.sessions.sessions import Conversation, SessionLog, load_session
from engine.events import TurnStarted

from .test_sessions import READY, say

HEAD = {"type": "session", "version": 2, "created": "2026-11-23T10:00:00.000+00:00"}


def asked(turn: object, text: object = "q", **more: object) -> dict[str, Any]:
    return {"type": "user", "turn": turn, "text": text, "time": "", **more}


def answered(turn: object, text: object = "a") -> dict[str, Any]:
    return {"type": "text", "turn": turn, "answer": text}


def file_of(folder: Path, *lines: object) -> Conversation:
    path = folder / "x.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (HEAD, *lines)))
    return load_session(path)


def shape(conversation: Conversation) -> list[tuple[int, int, str]]:
    return [(turn.number, turn.parent, turn.answer) for turn in conversation.tree]


def path_of(conversation: Conversation) -> list[int]:
    return [turn.number for turn in conversation.turns]


def test_every_version_comes_back(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    log.record(READY)
    say(log, 1, "one", ["1"])
    say(log, 2, "two", ["2"])
    log.user(3, "two", parent=1, once=True)
    log.record(TurnStarted(3, 5, 2, {"temperature": 0.9}))
    log.branch(3, "warm")
    log.here(2)
    log.close()
    conversation = load_session(log.path)
    assert shape(conversation) == [(1, 0, "1"), (2, 1, "2"), (3, 1, "")] and path_of(conversation) == [1, 2]
    third = conversation.tree[3]
    assert (third.name, third.once, third.target, third.drafter) == ("warm", True, "target", "drafter")
    assert conversation.tree.place(2, "answer") == (1, 2) and conversation.damaged == 0
    log = SessionLog.resume(log.path)
    say(log, 4, "three", ["3"])
    log.close()
    assert path_of(load_session(log.path)) == [1, 2, 4], "where it stood, without a word"
    assert list_sessions(tmp_path)[0].questions == ("one", "two", "three")


def test_a_question_asked_again_further_on_is_one_more(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    say(log, 1, "one", ["1"])
    say(log, 2, "one", ["2"])
    log.take_back(2)
    say(log, 3, "one", ["3"])
    log.user(4, "one", parent=1)
    log.here(1)
    log.user(5, "one")
    log.close()
    assert list_sessions(tmp_path)[0].questions == ("one", "one"), "3, 4 and 5 are versions of what follows 1"


def test_a_conversation_without_versions_is_written_as_it_always_was(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    log.here(0)
    say(log, 1, "one", ["1"])
    say(log, 2, "two", ["2"])
    log.close()
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    objects = [line for line in lines if isinstance(line, dict)]
    assert {line["type"] for line in objects} == {"session", "user", "finished"}
    assert all(set(line) == {"type", "turn", "text", "time"} for line in objects if line["type"] == "user")
    assert [line for line in lines if not isinstance(line, dict)] == ["1", "2"]


def test_what_earlier_versions_took_back_is_a_version_now(tmp_path: Path) -> None:
    taken = {"type": "taken_back", "turn": 2}
    turns = (asked(1), answered(1), asked(2, "old"), answered(2))
    conversation = file_of(tmp_path, *turns, taken, asked(3, "new"), answered(3))
    assert shape(conversation) == [(1, 0, "a"), (2, 1, "a"), (3, 1, "a")] and path_of(conversation) == [1, 3]
    conversation = file_of(tmp_path, *turns, taken, {"type": "put_back", "turn": 2})
    assert path_of(conversation) == [1, 2]


def test_settings_of_a_version_alone_are_not_those_to_go_on_with(tmp_path: Path) -> None:
    started = {"type": "started", "prompt_tokens": 1, "reused_tokens": 0}
    lines = (
        asked(1), {**started, "turn": 1, "settings": {"temperature": 0.2}},
        asked(2), {**started, "turn": 2, "settings": {"temperature": 0.5}},
        asked(3, parent=1, once=True), {**started, "turn": 3, "settings": {"temperature": 1.5}},
    )  # fmt: skip
    conversation = file_of(tmp_path, *lines)
    assert path_of(conversation) == [1, 3] and conversation.settings == {"temperature": 0.5}
    assert file_of(tmp_path).settings == {}


@pytest.mark.parametrize(
    ("lines", "found", "damaged"),
    [
        ([asked(1, parent=2), answered(1), asked(2, parent=1), answered(2)], [(1, 0, "a"), (2, 1, "a")], 1),
        ([asked(1, parent=1), answered(1)], [(1, 0, "a")], 1),
        ([asked(1), answered(1), asked(1), answered(1, "b")], [(1, 0, "a"), (2, 1, "b")], 0),
        ([asked(5), answered(5), asked(2), answered(2, "b")], [(5, 0, "a"), (6, 5, "b")], 0),
        ([asked(1), asked(2, parent=77), answered(2)], [(1, 0, ""), (2, 1, "a")], 1),
        ([asked(1), asked(2, parent="1"), asked(3, parent=None)], [(1, 0, ""), (2, 1, ""), (3, 2, "")], 2),
        ([asked("one"), asked(None), asked(-4)], [(1, 0, ""), (2, 1, ""), (3, 2, "")], 0),
        ([asked(1, 7), asked(2, None), asked(3)], [(3, 0, "")], 2),
        ([asked(1), answered(1, 4), answered(2), answered("x"), answered(1)], [(1, 0, "a")], 3),
        ([asked(1), {"type": "here", "turn": 9}, {"type": "here"}, {"type": "branch", "turn": 1}], [(1, 0, "")], 3),
        ([asked(1), {"type": "finished", "turn": 1, "reason": "tired", "statistics": {}}], [(1, 0, "")], 1),
        ([asked(1), {"type": "started", "turn": 1, "prompt_tokens": "x", "reused_tokens": 0, "settings": {}}],
         [(1, 0, "")], 1),
        ([{"type": "model", "target": 3}, {"type": "put_back", "turn": 1}, {"type": "title", "title": 1}], [], 3),
        ([asked(1), {"type": "taken_back", "turn": 1}, answered(1), {"type": "here", "turn": 1}], [], 1),
    ],
)  # fmt: skip
def test_what_can_be_read_of_a_muddled_file_is_read(
    tmp_path: Path, lines: list[dict[str, Any]], found: list[tuple[int, int, str]], damaged: int
) -> None:
    conversation = file_of(tmp_path, *lines)
    assert (shape(conversation), conversation.damaged) == (found, damaged)
    conversation.tree.outline()
    for turn in conversation.tree:
        turn.finished()


def test_figures_that_are_none_are_left_out(tmp_path: Path) -> None:
    statistics = {"tok_s": "fast", "num_tokens": True, "acceptance_histogram": 3, "ttft_ms": float("nan"), "x": 1}
    lines = asked(1), {"type": "finished", "turn": 1, "reason": "stop", "statistics": statistics}
    figures = file_of(tmp_path, *lines).tree[1].figures
    assert (figures.tok_s, figures.num_tokens, figures.acceptance_histogram, figures.ttft_ms) == (0.0, 0, (), 0.0)


def test_a_file_cut_anywhere_keeps_what_stands_before_the_cut(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    say(log, 1, "one", ["1"])
    for turn in range(2, 6):
        log.user(turn, "again", parent=1)
        say_more = [f"{turn}"]
        log.record(TurnStarted(turn, 1, 0, {}))
        say(log, turn + 10, "more", say_more)
    log.close()
    whole, dice = log.path.read_bytes(), random.Random(5)
    head = whole.index(b"\n") + 1
    everything = shape(load_session(log.path))
    for cut in dice.sample(range(head, len(whole)), 60):
        log.path.write_bytes(whole[:cut])
        known = [(number, parent) for number, parent, _ in shape(load_session(log.path))]
        assert known == [(number, parent) for number, parent, _ in everything][: len(known)]


def test_no_change_of_any_byte_makes_it_stumble(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    for turn in range(1, 5):
        log.user(turn, "q", parent=max(turn - 2, 0))
        log.record(TurnStarted(turn, 1, 0, {}))
    log.branch(2, "name")
    log.here(1)
    log.close()
    whole, dice = log.path.read_bytes(), random.Random(6)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(whole.index(b"\n") + 1, len(data))] = dice.choice(b'0123456789"{}[],:nu\n -')
        log.path.write_bytes(data)
        conversation = load_session(log.path)
        assert len(conversation.tree.outline()) == len(conversation.tree)
        [turn.events() for turn in conversation.tree]
        list_sessions(tmp_path)
