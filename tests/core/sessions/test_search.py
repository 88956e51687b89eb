"""What was said is found: in questions, answers and names, with the index new, old, damaged, locked or missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dflash_tui.core.sessions.search import INDEX_NAME, Search, excerpt
from dflash_tui.core.sessions.sessions import SessionLog, append_title

from .test_archive import write


@contextmanager
def searching(folder: Path) -> Iterator[Search]:
    search = Search(folder)
    yield search
    search.close()


def found(folder: Path, words: str) -> list[tuple[str, int, str]]:
    with searching(folder) as search:
        return [(hit.name, hit.turn, hit.part) for hit in search.find(words)]


def test_everything_said_is_found_the_latest_first(tmp_path: Path) -> None:
    write(tmp_path, "about drones", "more", answer="They fly over the sea.", at=10)
    path = write(tmp_path, "the sea", at=20)
    append_title(path, "Sea things")
    assert found(tmp_path, "SEA") == [
        ("Sea things", 0, "name"), ("Sea things", 1, "question"),
        ("about drones", 2, "answer"), ("about drones", 1, "answer"),
    ]  # fmt: skip
    assert found(tmp_path, "fly sea") == [("about drones", 2, "answer"), ("about drones", 1, "answer")]
    assert found(tmp_path, '"fly over"') and not found(tmp_path, '"over fly"')
    assert found(tmp_path, "dron")[0] == ("about drones", 1, "question"), "a word may be cut short"
    assert found(tmp_path, "  ") == found(tmp_path, '"') == found(tmp_path, "nothing") == []


@pytest.mark.parametrize("words", ["AND", "NEAR(", "a*", "text:sea", "(", "-", "sea'", "^", "\0"])
def test_what_a_query_language_would_take_for_itself_is_words(tmp_path: Path, words: str) -> None:
    write(tmp_path, "and near sea")
    found(tmp_path, words)


def test_words_without_blanks_are_found_within(tmp_path: Path) -> None:
    write(tmp_path, "什么是推测解码", answer="推测解码是一种方法。")
    assert found(tmp_path, "解码") == [("什么是推测解码", 1, "answer"), ("什么是推测解码", 1, "question")]
    with searching(tmp_path) as search:
        assert next(search.find("推测")).text == "推测解码是一种方法。"


def test_the_index_follows_the_files(tmp_path: Path) -> None:
    path = write(tmp_path, "one", answer="apple")
    assert len(found(tmp_path, "apple")) == 1
    log = SessionLog.resume(path)
    log.user(2, "banana?")
    log.branch(1, "cherry")
    log.close()
    assert [found(tmp_path, word)[0][1:] for word in ("banana", "cherry", "apple")] == [
        (2, "question"), (1, "name"), (1, "answer"),
    ]  # fmt: skip
    with searching(tmp_path) as search:
        assert [hit.text for hit in search.known("banana")] == ["banana?"] and list(search.update()) == []
    path.unlink()
    assert found(tmp_path, "apple") == []


@pytest.mark.parametrize("damage", [b"", b"SQLite format 3\0" + b"x" * 5000, b"nonsense" * 999])
def test_a_damaged_index_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    write(tmp_path, "one", answer="apple")
    assert found(tmp_path, "apple")
    (tmp_path / INDEX_NAME).write_bytes(damage)
    assert found(tmp_path, "apple") and found(tmp_path, "apple")


def test_an_index_that_is_damaged_within_loses_nothing(tmp_path: Path) -> None:
    for number in range(40):
        write(tmp_path, f"question {number}", answer="apple " * 200, at=number)
    assert len(found(tmp_path, "apple")) == 40
    index = tmp_path / INDEX_NAME
    data = bytearray(index.read_bytes())
    for place in range(4096, len(data), 512):
        data[place : place + 256] = b"\xa5" * 256
    index.write_bytes(data)
    found(tmp_path, "apple")
    assert len(found(tmp_path, "apple")) == 40


def test_an_index_of_another_version_is_made_anew(tmp_path: Path) -> None:
    write(tmp_path, "one", answer="apple")
    database = sqlite3.connect(tmp_path / INDEX_NAME)
    database.executescript("PRAGMA user_version = 99; CREATE TABLE files (x)")
    database.close()
    assert found(tmp_path, "apple")


def test_without_an_index_the_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "one", answer="apple")

    def refuse(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", refuse)
    assert found(tmp_path, "apple") == [("one", 1, "answer")]


def test_while_another_window_writes_it_the_files_are_read(tmp_path: Path) -> None:
    write(tmp_path, "one", answer="apple")
    assert found(tmp_path, "apple")
    other = sqlite3.connect(tmp_path / INDEX_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    write(tmp_path, "two", answer="apple")
    assert sorted(name for name, _, _ in found(tmp_path, "apple")) == ["one", "two"]
    other.close()


def test_no_folder_holds_nothing(tmp_path: Path) -> None:
    assert found(tmp_path / "nowhere", "apple") == [] and not (tmp_path / "nowhere").exists()


def test_an_excerpt_shows_the_words_in_their_place() -> None:
    text = "word " * 50 + "the needle\nhere " + "tail " * 50
    shown, marks = excerpt(text, "needle HERE", 40)
    assert [shown[start:end] for start, end in marks] == ["needle", "here"]
    assert shown.startswith("…") and shown.endswith("…") and len(shown) <= 62
    assert excerpt("short", "absent", 40) == ("short", [])
