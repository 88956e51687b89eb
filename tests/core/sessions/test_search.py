"""What was said is found: in questions, answers and names."""

from __future__ import annotations

from pathlib import Path

from dflash_tui.core.sessions.search import Search
from dflash_tui.core.sessions.sessions import SessionLog, append_title

from .test_archive import write


def found(folder: Path, words: str) -> list[tuple[str, int, str]]:
    return [(hit.name, hit.turn, hit.part) for hit in Search(folder).find(words)]


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


def test_words_without_blanks_are_found_within(tmp_path: Path) -> None:
    write(tmp_path, "什么是推测解码", answer="推测解码是一种方法。")
    assert found(tmp_path, "解码") == [("什么是推测解码", 1, "answer"), ("什么是推测解码", 1, "question")]
    assert next(Search(tmp_path).find("推测")).text == "推测解码是一种方法。"


def test_what_was_read_follows_the_files(tmp_path: Path) -> None:
    path = write(tmp_path, "one", answer="apple")
    assert len(found(tmp_path, "apple")) == 1
    log = SessionLog.resume(path)
    log.user(2, "banana?")
    log.branch(1, "cherry")
    log.close()
    assert [found(tmp_path, word)[0][1:] for word in ("banana", "cherry", "apple")] == [
        (2, "question"), (1, "name"), (1, "answer"),
    ]  # fmt: skip
    search = Search(tmp_path)
    assert list(search.known("banana")) == [] and list(search.read()) == [0]
    assert [hit.text for hit in search.known("banana")] == ["banana?"]
    path.unlink()
    assert found(tmp_path, "apple") == []


def test_no_folder_holds_nothing(tmp_path: Path) -> None:
    assert found(tmp_path / "nowhere", "apple") == [] and not (tmp_path / "nowhere").exists()
