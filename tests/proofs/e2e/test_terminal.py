"""The chat in a real terminal, from the first key to the last: ask, watch, stop, steer, save, quit."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

import pytest

from dflash_tui.core.text.fences import CodeBlock, find_blocks

from .browser import missing_browser, open_page
from .chatting import DRONE_PAGE, UNTIMED, ChatWindow, turns
from .conftest import OpenChat
from .terminal import RESTORED

pytestmark = pytest.mark.terminal


def test_a_session(chat: OpenChat) -> None:
    window = chat("--block-size", "2", size=(80, 24))
    terminal = window.terminal

    window.ask(DRONE_PAGE)
    window.wait_for_text(100)
    watched = terminal.wait_for("streaming")
    terminal.wait_for(lambda screen: screen != watched)

    terminal.press(*["M-Up"] * 6, "M-Right")
    terminal.wait_for(r"8 \(7\+1\)(.|\n)* 0\.05")
    terminal.wait_for(r"kept \d of 7")  # a later round drafted seven

    terminal.press("Escape")
    stopped = window.wait_for_turn(1)
    assert stopped.reason == "stopped"
    terminal.wait_for("⏹ stopped")  # the line of figures says that it is ready before this is drawn
    terminal.wait_for(re.escape(last_line(stopped.answer)))

    answered = window.ask_and_wait("Write a quicksort in Python")
    assert answered.reason == "stop"
    assert answered.figures.num_reused_tokens > 0
    # Still a block of eight: the settings outlive the turn.
    assert answered.figures.num_draft_tokens > 2 * answered.figures.num_spec_steps

    assert window.quit() == 0
    assert terminal.state == RESTORED


@pytest.mark.parametrize("flags", [[], ["--no-mouse"]])
def test_the_mouse_is_the_programs_or_the_terminals(chat: OpenChat, flags: list[str]) -> None:
    terminal = chat(*flags, ready=False).terminal
    terminal.wait_for("F1 help")
    assert terminal.takes_mouse is not bool(flags)


def test_the_mouse_moves_the_temperature_of_a_running_answer(chat: OpenChat, greedy_page: str) -> None:
    window = chat("--block-size", "2", size=(80, 24))
    window.ask(DRONE_PAGE)
    window.wait_for_text(100)
    assert greedy_page.startswith(turns()[0].answer)

    drag_to_the_end(window, "temp")
    window.terminal.wait_for(r"2\.00")
    window.terminal.wait_for(lambda _: not greedy_page.startswith(turns()[0].answer))
    window.terminal.press("Escape")
    answer = window.wait_for_turn(1).answer
    # Greedy until the slider moved, sampled from then on.
    assert common_length(answer, greedy_page) >= 100


def test_a_saved_page_is_the_answers_code_and_moves_in_a_browser(chat: OpenChat, tmp_path: Path) -> None:
    if reason := missing_browser():
        pytest.skip(reason)
    window = chat(*UNTIMED)
    page = last_block(window.ask_and_wait(DRONE_PAGE).answer)
    assert page.closed and page.filename == "index.html"

    saved = tmp_path / "out" / "index.html"
    window.save(saved)
    assert saved.read_bytes() == page.content.encode()
    report = open_page(saved)
    assert report.console_errors == []
    assert report.changed, "its canvas stands still"


def test_resizing_while_it_streams_loses_nothing(chat: OpenChat, greedy_page: str) -> None:
    window = chat("--no-speculation", *UNTIMED)
    window.ask(DRONE_PAGE)
    window.wait_for_text(100)
    for width, height in ((60, 18), (120, 36), (80, 24)):
        window.terminal.resize(width, height)
        window.terminal.wait_for(lambda screen, width=width, height=height: fills(screen, width, height))
    window.terminal.press("Escape")
    answer = window.wait_for_turn(1).answer
    assert greedy_page.startswith(answer)
    window.terminal.wait_for(re.escape(last_line(answer)))  # the record is ahead of the screen by a frame


def drag_to_the_end(window: ChatWindow, slider: str) -> None:
    """Pull a slider's knob to the right end of its track."""
    column, row = window.terminal.find(rf"{slider}\s+├")
    line = window.terminal.screen.splitlines()[row]
    knob, end = line.index("●", column), line.index("┤", column)
    window.terminal.drag((knob, row), (end - 1, row))


def last_block(text: str) -> CodeBlock:
    return find_blocks(text)[-1]


def last_line(text: str) -> str:
    """The last line with something on it."""
    return text.rstrip().splitlines()[-1].strip()


def common_length(left: str, right: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def fills(screen: str, width: int, height: int) -> bool:
    """Whether the program has drawn a window of this size: its bottom line stands on the last row."""
    rows = screen.rstrip("\n").split("\n")
    return len(rows) == height and rows[-1].startswith(" ●") and max(map(len, rows)) <= width
