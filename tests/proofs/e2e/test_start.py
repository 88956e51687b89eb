"""How soon the chat is there: its first frame before torch is even imported, and the models soon after. What it takes
is told in processor time: what else a machine does is no part of it."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from support.terminal import Terminal

from .terminal import PATIENCE_S

FIRST_FRAME_S, READY_S = 1.0, 8.0
LENIENCE = 2
"""What a slow machine may take of the two limits."""
FIRST_FRAME, READY = "F1 help", "● ready"
"""The status line of the first frame, and its word once the models are loaded."""
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
TORCH_IMPORTED = "(torch is imported)"

CODE = "import sys; from dflash_tui.cli.main import main; sys.exit(main(['--out', {!r}]))"
# Tells the terminal when torch is imported: the order of the bytes is the order of events.
TELLTALE = f"""
import os, sys
def tell(event, details):
    if event == "import" and details[0] == "torch":
        os.write(1, b"{TORCH_IMPORTED}")
sys.addaudithook(tell)
"""


def started(folder: Path, before: str = "") -> Terminal:
    """The program, behind other code, in a terminal of 120x36."""
    return Terminal(before + CODE.format(str(folder / "out")), (120, 36), fresh=True)


def wait_for(terminal: Terminal, words: str) -> float:
    """Processor seconds of the program, all its threads', until its output has these words; places and colours left
    out."""
    deadline = time.monotonic() + PATIENCE_S
    while words not in _ESCAPES.sub("", terminal.output):
        assert time.monotonic() < deadline, f"no {words!r}: {terminal.output[-2000:]}"
        terminal.read(0.5)
    stat = Path(f"/proc/{terminal.process.pid}/stat").read_text()
    return sum(map(int, stat.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def test_the_first_frame_and_the_models_are_there_in_time(tmp_path: Path) -> None:
    with started(tmp_path) as terminal:
        first_frame, ready = wait_for(terminal, FIRST_FRAME), wait_for(terminal, READY)
    print(f"first frame {first_frame:.2f} s (limit {FIRST_FRAME_S:.0f} s), ready {ready:.2f} s (limit {READY_S:.0f} s)")
    assert first_frame <= LENIENCE * FIRST_FRAME_S
    assert ready <= LENIENCE * READY_S


def test_torch_is_not_imported_before_the_first_frame(tmp_path: Path) -> None:
    with started(tmp_path, TELLTALE) as terminal:
        wait_for(terminal, TORCH_IMPORTED)
        wait_for(terminal, FIRST_FRAME)
        shown = _ESCAPES.sub("", terminal.output)
    assert shown.index(FIRST_FRAME) < shown.index(TORCH_IMPORTED)
