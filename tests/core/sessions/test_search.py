"""What was said is found: in questions, answers and names."""

from __future__ import annotations

from pathlib import Path

from dflash_tui.core.sessions.search import Search
from dflash_tui.core.sessions.sessions import SessionLog, append_title

from .test_archive import write


def found(folder: Path, words: str) -> list[tuple[Path, int]]:
    return list(Search(folder).find(words).items())


def test_everything_said_is_found_the_latest_first(tmp_path: Path) -> None:
    drones = write(tmp_path, "about drones", "more", answer="They fly over the sea.", at=10)
    sea = write(tmp_path, "the sea", at=20)
    append_title(sea, "Sea things")
    assert found(tmp_path, "SEA") == [(sea, 1), (drones, 2)] and found(tmp_path, "things") == [(sea, 0)]
    assert found(tmp_path, "fly sea") == found(tmp_path, '"fly over"') == [(drones, 2)]
    assert found(tmp_path, "dron") == [(drones, 1)], "a word may be cut short"
    assert found(tmp_path, "  ") == found(tmp_path, '"') == found(tmp_path, '"over fly"') == []


def test_words_without_blanks_are_found_within(tmp_path: Path) -> None:
    path = write(tmp_path, "什么是推测解码", answer="推测解码是一种方法。")
    assert found(tmp_path, "解码") == found(tmp_path, "一种") == [(path, 1)]


def test_what_was_read_follows_the_files(tmp_path: Path) -> None:
    path = write(tmp_path, "one", answer="apple")
    assert found(tmp_path, "apple") == [(path, 1)]
    log = SessionLog.resume(path)
    log.user(2, "banana?")
    log.branch(1, "cherry")
    log.close()
    assert [found(tmp_path, word) for word in ("banana", "cherry", "apple")] == [[(path, 2)], [(path, 1)], [(path, 1)]]
    search = Search(tmp_path)
    assert search.known("banana") == {} and list(search.read()) == [0] and search.known("banana") == {path: 2}
    path.unlink()
    assert found(tmp_path, "apple") == []


def test_no_folder_holds_nothing(tmp_path: Path) -> None:
    assert found(tmp_path / "nowhere", "apple") == [] and not (tmp_path / "nowhere").exists()
