"""What is kept of a chat, used of it, and found again, at a desk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dflash_tui.core.conversation.start import Start
from dflash_tui.core.desk.lanes import question_of
from dflash_tui.core.desk.views import RoundView
from dflash_tui.core.replay.recording import read_recording
from dflash_tui.core.sessions.archive import open_session, reopen
from engine.events import TurnStarted

from .conftest import ANSWER, Sit


def test_code_is_saved_by_number_by_name_and_all_of_it(sit: Sit, tmp_path: Path) -> None:
    seat = sit(answer="```python a.py\nprint(1)\n```\n```html\n<p>\n```\n```text\nunfinished")
    assert "no code block yet" in seat.type("/save")
    seat.type("hi", "/save 1", "/save 2 page.html", "/save all")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"a.py", "page.html", "index.html", "block-3.txt"}
    assert "It has no end yet" in seat.face.words and "There is no code block 7" in seat.type("/save 7")
    assert "is not a file name inside" in seat.type("/save ../out.py")
    assert "Code block 1: print(1)" in seat.type("/copy 1")
    assert "The answer: " in seat.type("/copy answer")


def test_without_a_screen_nothing_is_opened(sit: Sit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    seat = sit(answer="```html page.html\n<p>\n```")
    said = seat.type("hi", "/open")
    assert "no screen here" in said and "It is here" in said and (tmp_path / "out" / "page.html").exists()


def test_a_chat_is_exported_and_written_as_markdown(sit: Sit) -> None:
    seat = sit()
    assert "Nothing was said" in seat.type("/markdown") and "no answer to export" in seat.type("/export json")
    seat.type("hi", "/export json", "/export html last page.html", "/markdown said.md")
    assert [path.name for path in seat.face.kept] == ["answer.json", "page.html", "said.md"]
    assert json.loads(seat.face.kept[0].read_text())["sections"][0]["kind"] == "answer"
    kept = [(path, json.loads(path.read_text())["sections"]) for path in seat.face.kept[:1]]
    seat.type("more", "/export json", "/export last my.JSON", "/export json my.JSON")
    kept += [(path, json.loads(path.read_text())["sections"]) for path in seat.face.kept[3:]]
    assert [(path.name, [each["question"] for each in sections]) for path, sections in kept] == [
        ("answer.json", ["hi"]), ("chat.json", ["hi", "more"]), ("my.JSON", ["more"]), ("my-2.JSON", ["hi", "more"])
    ]  # fmt: skip
    assert "takes" in seat.type("/export pdf")
    assert all("/markdown" in seat.type(f"/export {each}") for each in ("said.md", "md"))


def test_a_resumed_chat_is_exported_and_replayed_whole(sit: Sit) -> None:
    seat = sit()
    seat.type("one")
    first = seat.queue.log.path
    seat.type("/new", "elsewhere", f"/resume {first.stem}", "two", "/export json")
    sections = json.loads(seat.face.kept[0].read_text())["sections"]
    assert [(each["question"], each["text"]) for each in sections] == [("one", ANSWER), ("two", ANSWER)]
    events = read_recording(first).events()
    assert [event.question for event in events if isinstance(event, TurnStarted)] == ["one", "two"]


def test_conversations_are_named_listed_found_resumed_and_deleted(sit: Sit) -> None:
    seat = sit()
    seat.type("the first one", "/rename Apples")
    path = seat.queue.log.path
    assert seat.type("/new") == "" and ("new", 0) in seat.face.changes
    assert "Nothing was said here yet" in seat.type("/delete") and "takes" in seat.type("/rename")
    said = seat.type("hi", "/sessions", "/sessions apples", "/sessions print", "/sessions zebra")
    assert said.count("1 question: Apples") == 3 and "No conversation has these words" in said
    other = seat.queue.log.path
    seat.face.choices = ["no", "yes"]
    seat.type("/delete")
    assert other.exists()
    seat.type(f"/resume {path.stem}")
    assert [each.question for each in seat.desk.chat.tree.path] == ["the first one"]
    assert "That is this conversation" in seat.type(f"/resume {path.stem}")
    assert "There is no conversation 'zebra'" in seat.type("/resume zebra")
    seat.type("more", "/delete")
    assert not path.exists() and other.exists() and not seat.desk.chat.tree
    _, elsewhere = reopen(other)
    assert "another window" in seat.type(f"/resume {other.stem}")
    elsewhere.close()


def test_a_resumed_chat_has_its_settings_and_says_when_another_model_goes_on(sit: Sit) -> None:
    before = sit()
    before.type("/temp 0.5", "one")
    before.queue.log.close()
    path = before.queue.log.path
    path.write_text(path.read_text().replace("demo/target", "demo/other") + "not json\n")
    seat = sit()
    seat.type(f"/resume {path.stem}")
    assert seat.desk.chat.settings.temperature == 0.5
    assert "1 line of its file could not be read" in seat.face.words
    assert "a conversation with demo/other. demo/target goes on." in seat.face.words
    seat.queue.log.close()
    begun = sit(Start(conversation=open_session(path)))
    assert begun.face.words.count("demo/target goes on.") == 1 and ("resumed", 0) in begun.face.changes


def test_rounds_and_figures_are_shown_as_views(sit: Sit) -> None:
    seat = sit()
    assert "no numbers before" in seat.type("/stats") and "no rounds before" in seat.type("/steps")
    said = seat.type("hi", "/stats", "/steps 0", "/steps 9")
    assert "tokens written: " in said and "Round 0 of 0 wrote " in said and "has rounds 0 to 0" in said
    assert "share 0.0%" not in said
    assert [view.number for view in seat.face.shown if isinstance(view, RoundView)] == [None, 0, 9]


def test_a_race_is_over_this_question(sit: Sit) -> None:
    seat = sit()
    assert "Ask something first" in seat.type("/race")
    seat.type("/race what else?", "hi", "/race")
    assert [race.question for race in seat.face.races] == ["what else?", "hi"]
    said = question_of(seat.desk.chat, "")
    seat.type("more")
    assert [each.content for each in said] == ["hi"]
    assert [each.content for each in question_of(seat.desk.chat, "")] == ["hi", ANSWER, "more"]
