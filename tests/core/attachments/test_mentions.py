"""@path in a question: what is one, and what only looks like it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dflash_tui.core.attachments.attachment_reader import AttachmentError
from dflash_tui.core.attachments.mentions import (
    as_asked,
    attach,
    completions,
    mention_of,
    mentions,
    pasted_paths,
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("notes.txt", "two words.md", 'quo"ted.txt', "we@ird😀.txt", "src/a.py", ".hidden"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("see @notes.txt, and what follows", ["notes.txt"]),
        ("(@notes.txt) [@src/a.py]: @notes.txt?!", ["notes.txt", "src/a.py", "notes.txt"]),
        ('@"two words.md" @two\\ words.md', ["two words.md", "two words.md"]),
        ("@we@ird😀.txt", ["we@ird😀.txt"]),
        ("@~/notes.txt", ["~/notes.txt"]),
        ("mail me@notes.txt, @someone, @app.route('/x'), @@notes.txt, @", []),
        ("@./gone.txt", ["./gone.txt"]),
        ("@\0", []),
    ],
)
def test_mentions(text: str, paths: list[str]) -> None:
    assert [mention.path for mention in mentions(text)] == paths


@pytest.mark.parametrize("name", ["notes.txt", "two words.md", 'quo"ted.txt', "we@ird😀.txt", "src/a.py"])
def test_what_is_written_for_a_path_is_read_back(name: str) -> None:
    assert [file.text for file in attach(f"look at {mention_of(name)}").files] == [name]


def test_a_plain_at() -> None:
    assert as_asked("@@notes.txt and @@x, @@ -1,3 +1 @@, @@self") == "@notes.txt and @@x, @@ -1,3 +1 @@, @@self"


def test_a_file_that_is_gone() -> None:
    with pytest.raises(AttachmentError, match="There is no file"):
        attach("what is in @./gone.txt")
    assert attach("what is in @gone.txt").strange == ("gone.txt",)


def test_completion() -> None:
    assert completions("look at @no") == ["look at @notes.txt "]
    assert completions("@s") == ["@src/"] and completions("@src/") == ["@src/a.py "]
    assert completions('@"two') == ['@"two words.md" '] == completions("@TWO")
    assert completions("@")[0] == "@src/", "folders first"
    assert not any("hidden" in text for text in completions("@")) and completions("@.h") == ["@.hidden "]
    assert completions("a@no") == completions("no") == completions("@gone/x") == []


@pytest.mark.parametrize(
    "form", ["{0}/notes.txt", "'{0}/two words.md'", "{0}/two\\ words.md", "file://{0}/two%20words.md"]
)
def test_dropped_files(here: Path, form: str) -> None:
    (path,) = pasted_paths(form.format(here) + " ")
    assert Path(path).is_file()


@pytest.mark.parametrize(
    "text", ["notes.txt", "/help", "/gone/file", "see {0}/notes.txt", "{0}", "'{0}/notes.txt", "x" * 99_999]
)
def test_other_pastes_stay_text(here: Path, text: str) -> None:
    assert pasted_paths(text.format(here)) == []


def test_several_dropped_at_once(here: Path) -> None:
    assert len(pasted_paths(f"{here}/notes.txt\n{here}/src/a.py")) == 2


@pytest.mark.parametrize("text", ["@" * 200_000, "@a " * 60_000, "@" + "." * 200_000, '@"' * 100_000, "@\\" * 100_000])
def test_hostile_texts_take_no_time(text: str) -> None:
    started = time.process_time()
    mentions(text), completions(text), as_asked(text)
    assert time.process_time() - started < 2
