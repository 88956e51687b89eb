"""What people do wrong in the chat: a clear message, the documented exit code, and nothing lost."""

from __future__ import annotations

import pytest

from .chatting import UNTIMED
from .conftest import OpenChat

pytestmark = pytest.mark.terminal


def test_a_paste_of_five_megabytes(chat: OpenChat) -> None:
    window = chat(*UNTIMED)
    window.terminal.type("before ")
    window.terminal.paste("a line of a very long file\n" * (5_000_000 // 27))
    window.wait_for_notice("Paste too large")
    window.terminal.type("after")
    window.terminal.wait_for("before after")
    window.terminal.press("Enter")
    assert window.wait_for_turn(1).question == "before after"
