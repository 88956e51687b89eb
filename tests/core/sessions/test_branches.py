"""Trees on disk: every version comes back, and a file that was damaged loses only what can't be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.core.sessions.archive import list_sessions
from dflash_tui.core.sessions.session_file import FORMAT_VERSION
from dflash_tui.core.sessions.sessions import Conversation, SessionLog, load_session
from engine.events import TurnStarted
from engine.rounds.blocks import columns_of
from engine.rounds.rows import row_of
from support.events_for_tests import make_step

from .test_sessions import READY, say

HEAD = {"type": "session", "version": FORMAT_VERSION, "created": "2026-11-23T10:00:00.000+00:00"}


def asked(turn: object, text: object = "q", **more: object) -> dict[str, Any]:
    return {"type": "user", "turn": turn, "text": text, "time": "", **more}


def answered(turn: object, text: object = "a") -> list[Any]:
    line = columns_of(0, [row_of(make_step(0, 0, text="a"))])
    line[0], line[4] = turn, [text]
    return line


def started(turn: object, prompt: object = 1, **settings: object) -> dict[str, Any]:
    counts = {"num_prompt_tokens": prompt, "num_reused_tokens": 0}
    return {"event": "TurnStarted", "turn": turn, **counts, "settings": settings}


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
    assert (third.name, third.once, third.by) == ("warm", True, READY)
    assert conversation.tree.version_of(2, "answer") == (1, 2) and conversation.damaged == 0
    log = SessionLog.resume(log.path)
    say(log, 4, "three", ["3"])
    log.close()
    assert path_of(load_session(log.path)) == [1, 2, 4], "where it stood, without a word"
    assert list_sessions(tmp_path)[0].questions == ("one", "two", "three")


def test_a_question_asked_again_further_on_is_one_more(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    say(log, 1, "one", ["1"])
    say(log, 2, "one", ["2"])
    log.user(3, "one", parent=1)
    log.here(1)
    log.user(4, "one")
    log.close()
    assert list_sessions(tmp_path)[0].questions == ("one", "one"), "2, 3 and 4 are versions of what follows 1"


def test_a_conversation_without_versions_is_written_as_it_always_was(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    log.here(0)
    say(log, 1, "one", ["1"])
    say(log, 2, "two", ["2"])
    log.close()
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    objects = [line for line in lines if isinstance(line, dict)]
    assert [line.get("type", line.get("event")) for line in objects] == ["session", *("user", "TurnFinished") * 2]
    assert all(set(line) == {"type", "turn", "text", "time"} for line in objects if line.get("type") == "user")
    assert len(lines) == len(objects) + 2


def test_settings_of_a_version_alone_are_not_those_to_go_on_with(tmp_path: Path) -> None:
    asking = (asked(1), asked(2), asked(3, parent=1, once=True))
    lines = [line for each, warm in zip(asking, (0.2, 0.5, 1.5), strict=True)
             for line in (each, started(each["turn"], temperature=warm))]  # fmt: skip
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
        ([asked(1), {"event": "TurnFinished", "turn": 1, "reason": "tired"}], [(1, 0, "")], 1),
        ([asked(1), 5, answered(1)], [(1, 0, "a")], 1),
        ([asked(1), started(1, "x")], [(1, 0, "")], 1),
        ([{"event": "EngineReady", "target": 3}, {"event": "nothing"}, {"type": "title", "title": 1}], [], 3),
        ([asked(1), {"type": "taken_back", "turn": 1}, answered(1), {"type": "here", "turn": 1}], [], 2),
        ([asked(1), answered(1), {"type": "taken_back", "turn": 1}], [(1, 0, "a")], 0),
    ],
)  # fmt: skip
def test_what_can_be_read_of_a_muddled_file_is_read(
    tmp_path: Path, lines: list[dict[str, Any]], found: list[tuple[int, int, str]], damaged: int
) -> None:
    conversation = file_of(tmp_path, *lines)
    assert (shape(conversation), conversation.damaged) == (found, damaged)
    assert len(list_sessions(tmp_path)) == 1
    conversation.tree.outline()
