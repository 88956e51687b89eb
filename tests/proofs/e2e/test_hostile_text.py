"""What a model may say, and a terminal should not obey."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .terminal import Terminal

pytestmark = pytest.mark.terminal

ANSWER = "\n".join(
    [
        "one \x1b[2J\x1b[H two",  # clears the screen
        "\x1b]0;a title\x07\x1b]2;a title\x1b\\ three",
        "\x1b]52;c;aGVsbG8=\x07 four",  # writes to the clipboard
        "\x1b[?2004l\x1b[?1049l\x1b[?25l\x1b[?1000l five",  # pastes without brackets, leaves the alternate screen
        "\x1bc six \x9b31m seven \r eight \b nine \x07\x00",
        "שלום abc \u202egnorts\u202c end",
        "日本語のテキスト | e\u0301a\u0308 | 👩\u200d👩\u200d👧 | ｆｕｌｌ",
        "\x1b[6n\x1b[c\x1b]11;?\x07 asks the terminal",
        "last line",
    ]
)
CHAT = """
import sys
from functools import partial
from pathlib import Path
from dflash_tui.app.main import run_chat
from engine.commands import EngineOptions, GenerationSettings
from support.scripted_engine import ScriptedEngine
source = partial(ScriptedEngine, answer={answer!r})
sys.exit(run_chat(source, GenerationSettings(), Path({out!r})))
"""


def test_what_a_model_writes_moves_nothing_but_text(tmp_path: Path) -> None:
    code = CHAT.format(answer=ANSWER, out=str(tmp_path / "out"))
    with Terminal.running([sys.executable, "-c", code], tmp_path / "terminal", (100, 30)) as terminal:
        terminal.wait_for("● ready")
        before = terminal.flags
        terminal.type("go")
        terminal.press("Enter")
        screen = terminal.wait_for(r"last line[\s\S]*tokens ·[\s\S]*● ready")
        assert terminal.flags == before
        rows = screen.splitlines()
        for words in ("one", "three", "four", "five", "six", "eight", "gnorts", "asks the terminal"):
            assert any(words in row for row in rows[1:22]), words
        assert rows[0].startswith(" dflash-chat")
        edge = [row for row in terminal.screen.splitlines() if "日本語のテキスト | " in row]
        assert len(edge) == 1 and "ｆｕｌｌ" in edge[0]
        terminal.paste("two\nlines")
        terminal.wait_for(r"❯ two\s*\n\s+lines")
        terminal.press("C-q")
        assert terminal.wait_for_exit() == 0
