"""What differs between operating systems, as far as one of them can play another: the branches for Windows, here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_tui.core import platforms
from dflash_tui.core.attachments.attachment_reader import read_file
from dflash_tui.core.files.saving import SavingError, save_text
from dflash_tui.core.sessions.archive import OpenElsewhere, delete_session, list_sessions, reopen
from dflash_tui.core.sessions.prompts import PromptHistory
from dflash_tui.core.sessions.search import Search
from dflash_tui.core.sessions.sessions import SessionLog

ROOT = Path(__file__).parents[2]
HOLDS = """
import sys, time
from pathlib import Path
from dflash_tui.core import platforms
from dflash_tui.core.sessions.sessions import SessionLog
platforms.WINDOWS = sys.argv[2] == "True"
log = SessionLog.resume(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=[False, True], ids=["Linux", "Windows"])
def windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(platforms, "WINDOWS", request.param)
    return bool(request.param)


@pytest.fixture
def conversation(tmp_path: Path, windows: bool) -> Path:
    log = SessionLog.create(tmp_path)
    log.user(1, "hello")
    assert bool(list(tmp_path.glob("*.lock"))) == windows, "Windows locks bytes, which nobody could read then"
    assert [each.path for each in list_sessions(tmp_path)] == [log.path], "it can be read meanwhile"
    log.close()
    assert list(tmp_path.iterdir()) == [log.path]
    return log.path


def test_one_window_writes_a_conversation_and_a_killed_one_holds_nothing(conversation: Path, windows: bool) -> None:
    command = [sys.executable, "-c", HOLDS, conversation, str(windows)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        for refused in (reopen, delete_session):
            with pytest.raises(OpenElsewhere):
                refused(conversation)
        other.kill()
        other.wait()
    for _ in range(2):  # what it left, and what this left
        _, log = reopen(conversation)
        with pytest.raises(BlockingIOError):
            SessionLog.resume(conversation)
        log.close()
    delete_session(conversation)
    assert list(conversation.parent.iterdir()) == []


def test_a_file_is_closed_before_windows_deletes_it(conversation: Path, windows: bool) -> None:
    """There a file that is open can't be deleted; elsewhere nobody may get hold of it in between."""
    log = SessionLog.resume(conversation)
    descriptor, seen = log._descriptor, []
    assert descriptor is not None

    class Watched(type(conversation)):  # type: ignore[misc]
        def unlink(self, missing_ok: bool = False) -> None:
            seen.append(_is_open(descriptor))
            os.unlink(self)

    log.path = Watched(conversation)
    log.close(remove=True)
    assert seen[0] is not windows and not conversation.exists()


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_files_are_read_and_kept_without_what_windows_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "supports_fd", set())
    log = SessionLog.create(tmp_path)
    log.user(1, "a needle in it")
    log.close()
    assert [hit.text for hit in Search(tmp_path).find("needle")] == ["a needle in it"]
    history = PromptHistory(tmp_path / "history.jsonl")
    history.add("one")
    with open(tmp_path / "history.jsonl", "ab") as file:
        file.write(b'"cut')
    history.add("two")
    assert PromptHistory(tmp_path / "history.jsonl").entries == ["one", "two"]
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\n")
    assert read_file(tmp_path / "a.txt").text == "one\r\ntwo\n"


@pytest.mark.parametrize(
    "name", ["con", "AUX.py", "nul .txt", "src/com1.c", "lpt¹", "C:page.html", "a:b", "what?.md", "page.", "dir /x"]
)
def test_names_that_windows_gives_to_nobody(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "WINDOWS", True)
    with pytest.raises(SavingError, match="Windows") as caught:
        save_text("x", tmp_path, name)
    assert "plain name" in caught.value.hint and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["console.py", "auxiliary.c", ".env", "a b.txt", "src\\main.py", "nul2"])
def test_names_that_it_gives(name: str, tmp_path: Path, windows: bool) -> None:
    assert save_text("a\nb\n", tmp_path, name).read_bytes() == b"a\nb\n"
