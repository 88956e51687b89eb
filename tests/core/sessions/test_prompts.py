"""The history of questions: on disk, shared, and never in the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui.core.sessions.prompts import HISTORY_NAME, READ, PromptHistory
from tests.pace import examples


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=8))
def test_any_questions_come_back(tmp_path: Path, questions: list[str]) -> None:
    path = tmp_path / "history"
    path.unlink(missing_ok=True)
    history = PromptHistory(path)
    for question in questions:
        history.add(f"{question} pasted", [question, "pasted"])
    again = PromptHistory(path)
    assert again.entries == history.entries and again.pasted == history.pasted
    different = [text for place, text in enumerate(questions) if place == 0 or questions[place - 1] != text]
    assert history.entries == [f"{text} pasted" for text in different]


def test_the_file_is_private_and_in_the_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFLASH_CHAT_STATE", str(tmp_path))
    PromptHistory.default().add("secret")
    assert (tmp_path / HISTORY_NAME).stat().st_mode & 0o777 == 0o600
    assert PromptHistory.default().entries == ["secret"]


def test_no_history_reads_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFLASH_CHAT_STATE", str(tmp_path))
    PromptHistory.default().add("before")
    silent = PromptHistory.default(keep=False)
    silent.add("mine")
    monkeypatch.setenv("DFLASH_CHAT_NO_HISTORY", "1")
    assert (silent.entries, PromptHistory.default().entries) == (["mine"], [])
    assert (tmp_path / HISTORY_NAME).read_text() == '"before"\n'


def test_windows_do_not_mix_their_lines(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from dflash_tui.core.sessions.prompts import PromptHistory\n"
        "history = PromptHistory(Path(sys.argv[1]))\n"
        "for i in range(200): history.add(f'{sys.argv[2]} {i} ' + 'x' * 300)\n"
    )
    path = tmp_path / "history"
    windows = [subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in ("a", "b", "c")]
    assert [window.wait(60) for window in windows] == [0, 0, 0]
    entries = PromptHistory(path).entries
    assert len(entries) == 600
    for name in ("a", "b", "c"):
        assert [int(text.split()[1]) for text in entries if text.startswith(name)] == list(range(200))


def test_a_damaged_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_bytes(b'"one"\n{"no": "question"}\n\xff\xfe\n"cut')
    PromptHistory(path).add("two")
    assert PromptHistory(path).entries == ["one", "two"]


def test_only_the_end_of_a_huge_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text(f'"{"x" * READ}"\n"last"\n')
    assert PromptHistory(path).entries == ["last"]


def test_a_place_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = PromptHistory(tmp_path / "file" / "history")
    history.add("kept in memory")
    assert history.entries == ["kept in memory"]


def test_search_finds_every_word_newest_first_and_each_question_once() -> None:
    history = PromptHistory(None)
    for text in ("Sort a list", "a page", "sort two lists", "Sort a list"):
        history.add(text)
    assert history.search("LIST sort") == ["Sort a list", "sort two lists"]
    assert history.search("") == ["Sort a list", "sort two lists", "a page"]
    assert history.search("zebra") == []


def test_commands_are_found_when_a_slash_asks_for_them() -> None:
    history = PromptHistory(None)
    for text in ("write a theme", "/theme mono", "//theme is a path"):
        history.add(text)
    assert history.search("theme") == ["//theme is a path", "write a theme"]
    assert history.search("/theme") == ["//theme is a path", "/theme mono"]
