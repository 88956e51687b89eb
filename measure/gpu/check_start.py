"""``python -m measure.gpu.check_start`` from the repository's root: is a chat ready as soon as ``-p`` is?

The program is started in turns with ``-p`` and as a chat in a pseudo-terminal of 120x36, with the same flags and the
weights in the page cache, a question follows, and each moment on the way is noted. Once before all of it each, for what
a first start compiles. Prints medians, what pieces of it took, and which thread computed for how long until
ready.

``--bundled`` takes the bundled pair instead of one of the 26B-A4B's shape, to try the script out, also on a CPU. Needs
Textual; a GPU's machine may have it from a folder of wheels on ``PYTHONPATH``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

from measure.gpu.report import Report
from measure.quick import parse
from support.terminal import Terminal

SIZE = (120, 36)
QUESTION = "Write a quicksort in Python"
LOOKED_AT = 1.5
"""Seconds between seeing that a chat is ready and the first key, in which everything is done that getting ready leaves
to do."""
TYPED_FOR = 1.0
"""Seconds between the question's last letter and Enter."""
LIMIT = 1.05
"""How many times as late as without a screen, at most."""
WRITE = """
import sys, torch
from pathlib import Path
from measure.gpu.check_exact import write_pair
from measure.gpu.report import Report
from support.checkpoints import write_tokenizer
pair = Path(sys.argv[1])
write_pair(pair, False, sys.argv[3], torch.device(sys.argv[2]), Report())
write_tokenizer(pair / "target")
"""
READY, FIRST_TOKEN = "ready", "first token"
TERMINAL_KIND = "\x1b[?62;22c"


def headless(model: list[str], notes: Path) -> None:
    """Runs the program without a screen. It asks as long after ready as somebody who types, for a GPU slows down at
    rest."""
    rest = str(LOOKED_AT + TYPED_FOR)
    command = [sys.executable, "-m", "measure.gpu.started", str(notes), rest, *model, "-p", QUESTION]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)


def chat(model: list[str], notes: Path) -> float:
    """Runs a chat as a person does: look at the screen, type, and press Enter. Returns when it was seen to be ready."""
    code = f"import sys, runpy; sys.argv = {['started', str(notes), '0', *model]!r}"
    with Terminal(f"{code}; runpy.run_module('measure.gpu.started', run_name='__main__')", SIZE) as terminal:
        terminal.send(TERMINAL_KIND)
        terminal.wait_for("ready", 120)
        seen = time.time()
        watch(terminal, LOOKED_AT)
        terminal.send(QUESTION)
        watch(terminal, TYPED_FOR)
        terminal.send("\r")
        deadline = time.monotonic() + 60
        while not notes.exists() and time.monotonic() < deadline:
            watch(terminal, 0.05)
        terminal.send("\x1b")
        watch(terminal, 0.5)
        terminal.send("\x11")
        terminal.wait_for_exit()
    return seen


def watch(terminal: Terminal, seconds: float) -> None:
    """Reads what is written for ``seconds``, as a terminal does."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        terminal.read(left)
        terminal.output = terminal.output[-2000:]


def taken(notes: Path, seen: float | None) -> dict[str, Any]:
    """The moments that a process noted. It is ready when its screen said so, if it has one."""
    found: dict[str, Any] = json.loads(notes.read_text())
    moments = found["moments"]
    for phase in [name for name in moments if " of weights and " in name]:
        moments["memory planned"] = moments.pop(phase)
    moments[READY] = moments["EngineReady"] if seen is None else seen - found["begun"]
    moments["prompt read"] = moments.pop("PrefillDone") - moments["asked"]
    moments[FIRST_TOKEN] = moments.pop("Step") - moments["asked"]
    return found


def tell(runs: dict[str, list[dict[str, Any]]], report: Report) -> None:
    """Prints the moments' medians without a screen and with it, and their ratio; then which threads computed until
    ready."""
    alone, beside = runs["-p"], runs["chat"]
    for name in alone[0]["moments"]:
        if name in ("asked", "TurnStarted") or not all(name in run["moments"] for run in (*alone, *beside)):
            continue
        first, second = (median(run["moments"][name] for run in each) for each in (alone, beside))
        holds = name not in (READY, FIRST_TOKEN) or second <= LIMIT * first
        value = f"{first:8.3f} {second:8.3f} s {second / first:8.2f}   chat: "
        report.timed(name, value + " ".join(f"{run['moments'][name]:.3f}" for run in beside), holds)
    for what, each in runs.items():
        for piece in each[0]["pieces"]:
            report.line(f"{piece}, {what}", called(each, piece))
        report.line(f"processor seconds until ready, {what}", computed(each, "python", "EngineReady"))
        report.line(f"from the question to the first token, {what}", computed(each, "asked", "Step"))


def called(runs: list[dict[str, Any]], piece: str) -> str:
    """How often a function was called, and its seconds, until the engine was ready and behind that; medians."""
    parts = []
    for behind in (False, True):
        calls = [
            [took for begun, took in run["pieces"][piece] if (begun > run["moments"]["EngineReady"]) == behind]
            for run in runs
        ]
        parts.append(f"{median(map(len, calls)):.0f} in {median(map(sum, calls)):.3f} s")
    return f"{parts[0]} until ready, {parts[1]} behind it"


def computed(runs: list[dict[str, Any]], begin: str, end: str) -> str:
    """Milliseconds that each thread computed between two moments; medians."""
    kinds = sorted({kind for run in runs for kind in run["spent"][end]})
    parts = []
    for kind in kinds:
        each = (run["spent"][end].get(kind, 0.0) - run["spent"].get(begin, {}).get(kind, 0.0) for run in runs)
        parts.append(f"{kind} {1e3 * median(each):.1f}")
    return ", ".join(parts) + " ms"


def prepare(folder: Path, device: str, weights: str, report: Report) -> list[str]:
    """Makes a checkpoint of the 26B-A4B's shape, unless an earlier call left one there; returns the arguments that name
    it."""
    pair, done = folder / weights, folder / weights / "written"
    if not done.exists():
        # In a process of its own: the GPU's memory must be free for those that are measured.
        begun = time.monotonic()
        subprocess.run([sys.executable, "-c", WRITE, str(pair), device, weights], check=True)
        done.touch()
        report.line("checkpoint", f"written in {time.monotonic() - begun:.0f} s")
    return [str(pair / "target"), "--draft", str(pair / "drafter")]


def warm(folder: Path) -> None:
    """Reads every byte once, so that no start has to wait for a disk."""

    def read(path: Path) -> None:
        with path.open("rb", buffering=0) as file:
            buffer = bytearray(16 << 20)
            while file.readinto(buffer):
                pass

    readers = [threading.Thread(target=read, args=(path,)) for path in folder.rglob("*.safetensors")]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundled", action="store_true", help="the bundled pair")
    parser.add_argument("--device", default="cuda" if Path("/dev/nvidiactl").exists() else "cpu")
    parser.add_argument("--weights", choices=("bf16", "fp8", "int4"), default="bf16", help="how the target is stored")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm/check_start"), help="where checkpoints lie")
    parser.add_argument("--times", type=int, default=3, help="starts of each kind")
    parser.add_argument("--speculation", action="store_true", help="with the drafter")
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --bundled --times 1")
    report = Report(options.quick)
    model = ["bundled"] if options.bundled else prepare(options.folder, options.device, options.weights, report)
    if not options.bundled:
        warm(options.folder)
    model += ["--device", options.device, "--max-new-tokens", "16"] + ["--no-speculation"] * (not options.speculation)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise every start compiles Python
    runs: dict[str, list[dict[str, Any]]] = {"-p": [], "chat": []}
    with tempfile.TemporaryDirectory() as name:
        os.environ |= {"DFLASH_CHAT_STATE": name, "DFLASH_CHAT_CONFIG": ""}
        for number in range(options.quick, options.times + 1):
            for what, start in (("-p", headless), ("chat", chat)):
                notes = Path(name) / f"{number}{what}.json"
                found = taken(notes, start(model, notes))
                print(what, {at: round(seconds, 2) for at, seconds in found["moments"].items()}, flush=True)
                if number:
                    runs[what].append(found)
    tell(runs, report)
    report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
