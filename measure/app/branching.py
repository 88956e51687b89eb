"""``python -m measure.app.branching``: does a conversation of 240 questions, 200 of them versions of one, stay quick?

Writes it, opens it with ``--continue`` in a pseudo-terminal of 120x36, types, turns versions over, and shows the tree.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from itertools import islice
from pathlib import Path

from dflash_tui.core.sessions.sessions import SessionLog
from engine.events import PrefillDone, TurnFinished, TurnStarted, TurnStatistics
from tests.app.tape import READY, endless, recorded_steps
from tests.app.terminal import Terminal

from .soak import QUIT, SIZE, User
from .waits import PROGRAM

TRUNK, VERSIONS, ROUNDS, SHORT = 40, 200, 60, 4
BACK, ESCAPE = "\x1bj", "\x1b"
ALLOWED = {"first frame": 1500.0, "a letter's echo": 30.0, "a version turned over": 150.0, "the tree": 300.0}
"""Milliseconds. The first frame shows a path of 21 questions with all their rounds."""


def write(folder: Path) -> None:
    log, steps = SessionLog.create(folder), recorded_steps()
    log.record(READY)
    for turn in range(1, TRUNK + VERSIONS + 1):
        question, parent = (f"question {turn}", None) if turn <= TRUNK else (f"version {turn}", TRUNK // 2)
        log.user(turn, question, parent=parent)
        log.record(TurnStarted(turn, 40, 20, {"seed": turn}, question))
        log.record(PrefillDone(turn, 1.0))
        text = ""
        for step in islice(endless(steps, turn, 1000.0), ROUNDS if turn <= TRUNK else SHORT):
            log.record(step)
            text += "".join(token.text for token in step.emitted)
        log.record(TurnFinished(turn, "stop", text, "", TurnStatistics(num_tokens=400, tok_s=900.0)))
    log.close()


def main() -> int:
    with tempfile.TemporaryDirectory() as state:
        os.environ["DFLASH_CHAT_STATE"] = state
        write(Path(state) / "sessions")
        took: dict[str, list[float]] = {name: [] for name in ALLOWED}
        program = PROGRAM.replace("['dflash-chat']", "['dflash-chat', '--continue', '--device', 'cpu']")
        started = time.perf_counter()
        with Terminal(program, SIZE) as terminal:
            terminal.wait_for(f"version {TRUNK + VERSIONS}")
            took["first frame"].append(1000 * (time.perf_counter() - started))
            user = User(terminal)
            terminal.wait_for("ready", 60)
            user.watch(8.0)  # rounds are timed behind the first frame
            for _ in range(20):
                user.type_letter()
                user.watch(0.1)
            took["a letter's echo"] = user.echoes
            for number in range(VERSIONS - 1, VERSIONS - 11, -1):
                took["a version turned over"].append(user.press(BACK, f"{number + 1}/{VERSIONS + 1}"))
                user.watch(0.3)
            took["the tree"].append(user.press("\x1bg", "this conversation, with every version"))
            terminal.send(ESCAPE)
            user.watch(0.3)
            terminal.send(QUIT)
            terminal.wait_for_exit()
    good = True
    for name, times in took.items():
        middle = statistics.median(times)
        good &= middle <= ALLOWED[name]
        print(f"{name:<24} median {middle:7.1f} ms, worst {max(times):7.1f}   allowed {ALLOWED[name]:.0f}")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
