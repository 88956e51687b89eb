"""How soon the chat is there: its first frame before torch is even imported, and the models soon after. What it takes
is told in processor time: what else a machine does is no part of it."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .chatting import PROGRAM
from .terminal import PATIENCE_S

FIRST_FRAME_S, READY_S = 1.0, 8.0
LENIENCE = 2
"""What a slow machine may take of the two limits."""
FIRST_FRAME, READY = "F1 help", "● ready"
"""The status line of the first frame, and its word once the models are loaded."""
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
TORCH_IMPORTED = "(torch is imported)"

# The same program, telling the terminal when torch is imported: the order of the bytes is the order of events.
TELLTALE = f"""
import os, sys
def tell(event, details):
    if event == "import" and details[0] == "torch":
        os.write(1, b"{TORCH_IMPORTED}")
sys.addaudithook(tell)
from dflash_tui.cli.main import main
sys.exit(main(["--out", sys.argv[1]]))
"""


class Output:
    """What a program writes to its terminal, read as it comes."""

    def __init__(self, descriptor: int, pid: int) -> None:
        self._descriptor, self._pid = descriptor, pid
        self._data = b""

    @property
    def text(self) -> str:
        """Without the escape sequences of places and colours."""
        return _ESCAPES.sub("", self._data.decode(errors="replace"))

    def wait_for(self, words: str) -> float:
        """Processor seconds of the program, all its threads', until its output has these words."""
        while words not in self.text:
            readable, _, _ = select.select([self._descriptor], [], [], PATIENCE_S)
            assert readable, f"no {words!r}: {self.text[-2000:]}"
            self._data += os.read(self._descriptor, 65536)
        user, system = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(command: Sequence[str | Path]) -> Iterator[Output]:
    """A program on a pseudo-terminal of 120x36."""
    outer, inner = os.openpty()
    termios.tcsetwinsize(inner, (36, 120))
    # A test runner's COLUMNS and LINES would hide the terminal's size from the program.
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, env=environment, start_new_session=True
    )
    os.close(inner)
    try:
        yield Output(outer, process.pid)
    finally:
        process.kill()
        process.wait()
        os.close(outer)


def test_the_first_frame_and_the_models_are_there_in_time(tmp_path: Path) -> None:
    with running([PROGRAM, "--out", tmp_path / "out"]) as output:
        first_frame, ready = output.wait_for(FIRST_FRAME), output.wait_for(READY)
    print(f"first frame {first_frame:.2f} s (limit {FIRST_FRAME_S:.0f} s), ready {ready:.2f} s (limit {READY_S:.0f} s)")
    assert first_frame <= LENIENCE * FIRST_FRAME_S
    assert ready <= LENIENCE * READY_S


def test_torch_is_not_imported_before_the_first_frame(tmp_path: Path) -> None:
    with running([sys.executable, "-c", TELLTALE, tmp_path / "out"]) as output:
        output.wait_for(TORCH_IMPORTED)
        output.wait_for(FIRST_FRAME)
    assert output.text.index(FIRST_FRAME) < output.text.index(TORCH_IMPORTED)
