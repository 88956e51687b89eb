"""Killed at any moment, a conversation reopens with everything but the round in flight.

``KILLS=50 python -m pytest tests/proofs/app/test_kills.py`` kills as often.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from dflash_tui.core.sessions.archive import reopen
from dflash_tui.core.sessions.sessions import load_session
from tests.pace import IN_CI

from .test_process import chat, only_session

TOLD = """
import os
from engine.events import Step
told = os.open({path!r}, os.O_WRONLY | os.O_CREAT)
def telling(emit):
    def tell(event):
        emit(event)
        if isinstance(event, Step):
            os.write(told, "".join(token.text for token in event.emitted).encode())
    return tell
"""
"""The engine writes down, on its own, every round that it has handed over."""


@pytest.mark.parametrize("seed", range(int(os.environ.get("KILLS", "5" if IN_CI else "3"))))
def test_killed_at_a_random_moment(seed: int, tmp_path: Path) -> None:
    told = tmp_path / "told"
    source = "ScriptedEngine(telling(emit), answer=PAGE * 50, round_seconds=0.005)"
    with chat(tmp_path, source, TOLD.format(path=str(told))) as terminal:
        terminal.wait_for("ready")
        terminal.send("go on\r")
        deadline = time.monotonic() + random.Random(seed).uniform(0.0, 1.5)
        while time.monotonic() < deadline:
            terminal.read(0.01)
        os.kill(terminal.process.pid, signal.SIGKILL)
        terminal.wait_for_exit()
    handed_over = told.read_text("utf-8")
    state = Path(os.environ["DFLASH_CHAT_STATE"]) / "sessions"
    if not handed_over and not any(path.stat().st_size for path in state.glob("*.jsonl")):
        return  # it had not been asked yet
    path = only_session()
    (turn,) = load_session(path).turns
    assert turn.question == "go on" and turn.reason is None
    assert turn.answer.startswith(handed_over)
    assert len(turn.answer) - len(handed_over) < 200, "more than one round in flight"
    conversation, log = reopen(path)
    log.close()
    assert conversation.turns[0].answer == turn.answer
