"""What was said is found: in questions, answers and names."""

from __future__ import annotations

from pathlib import Path

from dflash_tui.core.sessions.search import Search, around
from dflash_tui.core.sessions.sessions import SessionLog, append_title

from .test_archive import write


def found(folder: Path, words: str) -> list[tuple[Path, int]]:
    return [(path, place.turn) for path, place in Search(folder).find(words).items()]


def test_everything_said_is_found_the_latest_first(tmp_path: Path) -> None:
    drones = write(tmp_path, "about drones", "more", answer="They fly over the sea.", at=10)
    sea = write(tmp_path, "the sea", at=20)
    append_title(sea, "Sea things")
    assert found(tmp_path, "SEA") == [(sea, 1), (drones, 2)] and found(tmp_path, "things") == [(sea, 0)]
    assert found(tmp_path, "fly sea") == found(tmp_path, '"fly over"') == [(drones, 2)]
    assert found(tmp_path, "dron") == [(drones, 1)], "a word may be cut short"
    assert found(tmp_path, "  ") == found(tmp_path, '"') == found(tmp_path, '"over fly"') == []


def test_words_of_a_conversation_are_found_wherever_they_stand_in_it(tmp_path: Path) -> None:
    path = write(tmp_path, "a quicksort", "Größe?", answer="The pivot\ncomes\tfirst.")
    for words in ("quicksort pivot", "pivot target", "GRÖSSE quicksort", "Gro\u0308ße", '"pivot comes first"'):
        assert [each for each, _ in found(tmp_path, words)] == [path], words
    assert found(tmp_path, "quicksort boats") == [] and found(tmp_path, "target") == [(path, 0)]


def test_what_stands_around_words_begins_just_before_them() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve"
    assert around(text, "TWO", 20) == "one two three four f" and around(text, "boats", 8) == "one two "
    assert around(text, "twelve ten", 20) == "…nine ten eleven twe" and around(text, "twelve", 20) == "…eleven twelve"


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
    assert search.known("banana") == {} and list(search.read()) == [0] and search.known("banana")[path].turn == 2
    path.unlink()
    assert found(tmp_path, "apple") == []


def test_no_folder_holds_nothing(tmp_path: Path) -> None:
    assert found(tmp_path / "nowhere", "apple") == [] and not (tmp_path / "nowhere").exists()
