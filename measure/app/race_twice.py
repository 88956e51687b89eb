"""``python -m measure.app.race_twice [--pairs 3] [--block 16] [--temperature 0]``: does the race on the screen
show what is measured without one?

Races the bundled pair headless and on the screen of a pseudo-terminal, in turns, with the same lanes, and prints the
medians of both speed-ups.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict

from tests.app.terminal import Terminal

from .soak import QUIT, SIZE

QUESTION = "Write a quicksort in Python"
PROGRAM = "from dflash_tui.cli.main import program; import sys; sys.argv = ['dflash-chat', *{arguments!r}]; program()"
LANES = {"16": ("16", "8"), "auto": ("auto", "16")}
"""What the screen races for a block size."""
SPEED_UP = re.compile(r"DFlash, (?:block )?(\w+) +\d+ +([\d.]+)×")
LIMIT = 0.05
Figures = dict[str, float]
"""A speed-up per lane."""


def headless(block: str, sampling: list[str]) -> Figures:
    sizes = [flag for size in LANES[block] for flag in ("--block-size", size)]
    command = [sys.executable, "-c", PROGRAM.format(arguments=["race", "-p", QUESTION, "--json", *sizes, *sampling])]
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert report["identical"], report["remarks"]
    return {size: lane["speed_up"] for size, lane in zip(LANES[block], report["lanes"][1:], strict=True)}


def on_screen(block: str, sampling: list[str]) -> Figures:
    with Terminal(PROGRAM.format(arguments=["--reduced-motion", "--block-size", block, *sampling]), SIZE) as terminal:
        terminal.wait_for("ready", 60)
        terminal.send(f"/race {QUESTION}\r")
        terminal.output = ""
        shown = ""
        while shown.count("as one token at a time.") < len(LANES[block]):
            terminal.read(0.5)
            shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.output)
            assert "instead of" not in shown, "the texts differ"
        terminal.send("\x1b")
        terminal.send(QUIT)
        terminal.wait_for_exit()
    return {size: float(figure) for size, figure in SPEED_UP.findall(shown)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--block", choices=LANES, default="16")
    parser.add_argument("--temperature", default="0")
    wanted = parser.parse_args()
    os.environ.setdefault("DFLASH_CHAT_CONFIG", "")
    sampling = ["--temperature", wanted.temperature, "--seed", "4"]
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DFLASH_CHAT_STATE"] = folder
        for _ in range(wanted.pairs):
            for where, measure in (("headless", headless), ("screen", on_screen)):
                for size, speed_up in measure(wanted.block, sampling).items():
                    found[size][where].append(speed_up)
    for size, figures in found.items():
        alone, shown = (statistics.median(figures[where]) for where in ("headless", "screen"))
        verdict = "ok" if abs(shown / alone - 1) <= LIMIT else "MISSED"
        print(
            f"{size:<5} headless {alone:.2f} {figures['headless']}  screen {shown:.2f} {figures['screen']}  {verdict}"
        )


if __name__ == "__main__":
    main()
