"""A line that holds megabytes: frames wait until the terminal has shown the one before."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.app.line import QUESTION, SLACK, Line

from .test_process import chat


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def answered_after(line: Line, clock: Clock, seconds: float) -> None:
    assert line.ask() == QUESTION
    clock.now += seconds
    line.hear()


def test_late_is_later_than_the_quickest_answer(clock: Clock) -> None:
    line = Line(clock)
    for seconds in (0.3, 0.2, 0.4):
        answered_after(line, clock, seconds)
    line.ask()
    clock.now += 0.2
    assert not line.backed_up
    clock.now += SLACK + 0.01
    assert line.backed_up and line.expects
    line.hear()
    assert not line.backed_up and not line.expects


@pytest.mark.parametrize("answers", [True, False])
def test_over_ssh_the_chat_streams_and_leaves(answers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")
    with chat(tmp_path) as terminal:
        terminal.answers = answers
        terminal.wait_for(QUESTION)
        terminal.wait_for("ready")
        terminal.send("go on\r")
        terminal.wait_for("requestAnimationFrame")
        terminal.send("\x11")
        assert terminal.wait_for_exit() == 0


def test_nobody_is_asked_where_the_terminal_is_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    with chat(tmp_path) as terminal:
        while "ready" not in terminal.output:
            terminal.read(1.0)
        terminal.send("\x11")
        assert terminal.wait_for_exit() == 0
        assert QUESTION not in terminal.output
