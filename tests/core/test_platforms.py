"""One window writes a conversation at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dflash_tui.core.sessions.archive import OpenElsewhere, delete_session, list_sessions, reopen
from dflash_tui.core.sessions.sessions import SessionLog

ROOT = Path(__file__).parents[2]
HOLDS = """
import sys
from pathlib import Path
from dflash_tui.core.sessions.sessions import SessionLog
log = SessionLog.resume(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_one_window_writes_a_conversation_and_a_killed_one_holds_nothing(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    log.user(1, "hello")
    conversation = log.path
    assert [each.path for each in list_sessions(tmp_path)] == [conversation], "it can be read meanwhile"
    log.close()
    command = [sys.executable, "-c", HOLDS, conversation]
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
    assert list(tmp_path.iterdir()) == []
