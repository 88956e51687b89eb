"""What people do wrong in the chat: a clear message, the documented exit code, and nothing lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from .chatting import BUNDLED_PAIR, UNTIMED, turns
from .conftest import OpenChat
from .terminal import RESTORED

pytestmark = pytest.mark.terminal

WEIGHTS_EXIT_CODE = 3
GREETING = "Hello"


def test_a_paste_of_five_megabytes(chat: OpenChat) -> None:
    window = chat(*UNTIMED)
    window.terminal.type("before ")
    window.terminal.paste("a line of a very long file\n" * (5_000_000 // 27))
    window.wait_for_notice("Paste too large")
    window.terminal.type("after")
    window.terminal.wait_for("before after")
    window.terminal.press("Enter")
    assert window.wait_for_turn(1).question == "before after"


def test_truncated_weights(chat: OpenChat, tmp_path: Path) -> None:
    """The chat opens, says what is wrong with the weights instead of answering, and ends with the documented code."""
    pair = tmp_path / "pair"
    shutil.copytree(BUNDLED_PAIR, pair)
    weights = next((pair / "drafter").glob("*.safetensors"))
    os.truncate(weights, weights.stat().st_size // 2)
    window = chat(pair / "target", "--draft", pair / "drafter", size=(80, 24), ready=False)
    panel = window.terminal.wait_for("The engine has ended")
    assert weights.name in panel
    window.ask(GREETING)
    window.wait_for_notice("can't answer")
    window.terminal.wait_for(rf"❯ {GREETING}")  # or the question is lost
    assert turns() == ()
    assert window.quit() == WEIGHTS_EXIT_CODE
    assert window.terminal.state == RESTORED
