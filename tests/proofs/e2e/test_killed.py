"""The chat killed in the middle of an answer: what was said is on disk, and the terminal is given back."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.pace import only_in_ci
from tests.surroundings import until

from .chatting import DRONE_PAGE, UNTIMED, ChatWindow, squeezed, turns
from .conftest import OpenChat
from .terminal import PATIENCE_S, RESTORED

pytestmark = pytest.mark.terminal

LONG_ENOUGH = 700
"""Characters of an answer that fill more than the transcript of 80x24."""


@pytest.mark.parametrize("number", [only_in_ci(signal.SIGTERM), signal.SIGKILL])
def test_killed_in_the_middle_of_an_answer(chat: OpenChat, greedy_page: str, number: signal.Signals) -> None:
    window = chat("--no-speculation", *UNTIMED, size=(80, 24))
    window.ask(DRONE_PAGE)
    window.wait_for_text(LONG_ENOUGH)
    seen = visible_transcript(window)
    os.kill(window.terminal.pid, number)

    assert window.terminal.wait_for_exit() == 128 + number
    (turn,) = turns()
    assert turn.question == DRONE_PAGE
    assert seen in squeezed(turn.answer)
    assert greedy_page.startswith(turn.answer)
    if number is not signal.SIGKILL:  # which no program can act on
        assert window.terminal.state == RESTORED
        assert turn.reason == "stopped"


def test_the_terminal_vanishes_in_the_middle_of_an_answer(chat: OpenChat, greedy_page: str) -> None:
    window = chat("--no-speculation", *UNTIMED, size=(80, 24))
    window.ask(DRONE_PAGE)
    window.wait_for_text(LONG_ENOUGH)
    pid = window.terminal.pid
    window.terminal.vanish()

    until(lambda: not Path(f"/proc/{pid}").exists(), PATIENCE_S)
    (turn,) = turns()
    assert len(turn.answer) >= LONG_ENOUGH and greedy_page.startswith(turn.answer)


def visible_transcript(window: ChatWindow) -> str:
    """The rows between the header and the gauges, without blanks: wrapping does not matter.

    Without the last two: while a line moves up, a picture of the terminal may hold it twice.
    """
    rows = window.terminal.screen.splitlines()
    end = next(row for row, line in enumerate(rows) if line.startswith(" block ")) - 1
    return squeezed("".join(row[:79] for row in rows[1 : end - 2]))  # the last column is the scroll bar's
