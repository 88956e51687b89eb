"""What people do wrong in the chat: a clear message, the documented exit code, and nothing lost."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from .chatting import BUNDLED_PAIR, UNTIMED, turns
from .conftest import OpenChat
from .terminal import RESTORED

pytestmark = pytest.mark.terminal

WEIGHTS_EXIT_CODE = 3
ECHO_S = 1.0
"""How long a key may take to show after something large was refused."""
GREETING = "Hello"


def test_a_paste_of_five_megabytes(chat: OpenChat) -> None:
    window = chat(*UNTIMED)
    window.terminal.type("before ")
    window.terminal.paste("a line of a very long file\n" * (5_000_000 // 27))
    window.wait_for_notice("Paste too large")
    started = time.monotonic()
    window.terminal.type("after")
    window.terminal.wait_for("before after", seconds=ECHO_S)
    print(f"key to screen {time.monotonic() - started:.2f} s")
    window.terminal.press("Enter")
    assert window.wait_for_turn(1).question == "before after"


def test_prompts_that_can_not_be_asked_leave_the_conversation_as_it_was(chat: OpenChat) -> None:
    window = chat(*UNTIMED)
    window.ask("   ")  # an empty prompt would ask the first question of those to begin with
    window.wait_for_notice("Type a question first")
    assert turns() == ()

    first = window.ask_and_wait(GREETING)
    window.terminal.paste("many words " * 10_000)
    window.terminal.wait_for(r"\[Pasted #1 ")
    window.terminal.press("Enter")
    window.wait_for_notice("and the context holds")
    window.terminal.press("C-u")  # what was refused is still in the prompt

    second = window.ask_and_wait(GREETING)
    assert second.reason == "stop" and second.answer
    # The model still reads the first question and answer; with the refused one, this one would be refused as well.
    assert second.figures.num_prompt_tokens > 2 * first.figures.num_prompt_tokens


@pytest.mark.parametrize(("damaged", "size"), [("target", (120, 36)), ("drafter", (80, 24))])
def test_truncated_weights(chat: OpenChat, tmp_path: Path, damaged: str, size: tuple[int, int]) -> None:
    pair = tmp_path / "pair"
    shutil.copytree(BUNDLED_PAIR, pair)
    weights = next((pair / damaged).glob("*.safetensors"))
    os.truncate(weights, weights.stat().st_size // 2)
    expect_a_panel(chat, weights.name, pair / "target", "--draft", pair / "drafter", size=size)


def expect_a_panel(chat: OpenChat, words: str, *flags: str | Path, size: tuple[int, int] = (120, 36)) -> None:
    """The chat opens, says what is wrong with the weights instead of answering, and ends with the documented code."""
    window = chat(*flags, size=size, ready=False)
    panel = window.terminal.wait_for("The engine has ended")
    assert words in panel
    window.ask(GREETING)
    window.wait_for_notice("can't answer")
    window.terminal.wait_for(rf"❯ {GREETING}")  # or the question is lost
    assert turns() == ()
    assert window.quit() == WEIGHTS_EXIT_CODE
    assert window.terminal.state == RESTORED
