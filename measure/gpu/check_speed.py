"""Everything there is to check and to measure on a GPU, in one call: ``python -m measure.gpu.check_speed``.

Each part is a process of its own with a limit of its own, so that what hangs or crashes takes nothing else along. Parts
that time nothing come first and run side by side: what they wait for is the compiler. The others then run one after
another, in the order of the list, until the time is up (``--seconds``); ``--parts`` picks some. What each part prints
goes to a log beside its JSON in ``--out``; the last lines of all of them, and a table, are printed at the end. Needs no
pytest.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from engine.kernels.weights.kinds import MAKERS

MARGIN = 10.0
"""Seconds that are kept for the table."""
SIDE_BY_SIDE = 8
"""How many parts that time nothing run side by side."""
FAMILIES = ("Llama-3.1-8B", "Qwen3-8B", "Qwen3-Coder-30B-A3B", "gpt-oss-20b")
"""Shapes of the families other than Gemma's that have passes of their own."""
STARTED = ("bf16", "fp8", "int4") if find_spec("textual") else ()
"""Formats that Gemma's passes take; the chat needs Textual."""


@dataclass(frozen=True)
class Part:
    name: str
    module: str
    words: str
    seconds: float
    """Its limit in seconds."""
    shown: int
    """How many of its last lines of output are printed at the end."""
    times: bool = True
    """Whether it times anything; parts that don't run side by side."""


SHORT = "--widths 1 16 --contexts 128 --prompts"
"""The arguments with which two ways are compared."""
IN_ANY_FORMAT = ("kernels", "rounds", "figures", "again", "dense", "exact", "plan", "soak")
"""Parts whose target may be packed."""


PARTS = (
    Part("trees", "measure.gpu.check_trees", "--layers 6", 300, 30, times=False),
    *(Part(f"passes-{each}", "measure.gpu.check_passes", f"--shape {each}", 200, 12, times=False) for each in FAMILIES),
    Part("passes-mxfp4", "measure.gpu.check_passes", "--shape gpt-oss-20b --weights mxfp4", 200, 12, times=False),
    Part(
        "rounds-mxfp4",
        "measure.gpu.check_rounds",
        "--shape gpt-oss-20b --weights mxfp4 --prompts 0",
        300,
        20,
        times=False,
    ),
    Part("kernels", "measure.gpu.check_kernels", "", 150, 50),
    Part("rounds", "measure.gpu.check_rounds", "--soak 20", 260, 45),
    Part("wide", "measure.gpu.check_wide", "", 200, 40),
    Part("wide-fp8", "measure.gpu.check_wide", "--weights fp8", 200, 40),
    Part("wide-int4", "measure.gpu.check_wide", "--weights int4", 200, 40),
    Part("mtp", "measure.gpu.check_mtp", "", 300, 40),
    Part("figures", "engine.lab.bench", "--profile", 200, 150),
    Part("again", "engine.lab.bench", SHORT, 90, 12),
    Part("dense", "engine.lab.bench", "--shape 31B --widths 1 16 --contexts 128 2048 --prompts 2048", 150, 16),
    Part("host", "engine.lab.bench", "--rounds host --widths 1 16 --contexts 128 --prompts --count 16", 120, 14),
    Part("loaded", "measure.gpu.check_loaded", "", 420, 40),
    Part("exact", "measure.gpu.check_exact", "", 420, 40),
    *(Part(f"start-{each}", "measure.gpu.check_start", f"--weights {each}", 200, 12) for each in STARTED),
    Part("plan", "measure.gpu.check_plan", "", 120, 12),
    Part("soak", "measure.gpu.check_rounds", "--shape none --soak 240", 300, 8),
)


@dataclass(frozen=True)
class Outcome:
    name: str
    status: str
    seconds: float
    log: str


def run_part(part: Part, words: str, limit: float, folder: Path) -> Outcome:
    """Runs one part; it and everything it started are killed at the limit."""
    log, result = folder / f"{part.name}.log", folder / f"{part.name}.json"
    command = [sys.executable, "-W", "ignore", "-m", part.module, *words.split()]
    command += ["--out", str(result)]
    started = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(timeout=limit)
            status = "ok" if code == 0 else f"failed ({code})"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = f"stopped after {limit:.0f} s"
    return Outcome(part.name, status, time.perf_counter() - started, str(log))


def run_parts(parts: Sequence[Part], options: argparse.Namespace) -> list[Outcome]:
    """Runs parts, those first that time nothing; outcomes are in the order of ``parts``."""
    started, outcomes = time.perf_counter(), dict[Part, Outcome]()
    folder: Path = options.out

    def run(part: Part) -> None:
        left = options.seconds - MARGIN - (time.perf_counter() - started)
        words = part.words
        if part.name in IN_ANY_FORMAT:
            words += f" --weights {options.weights}"
        done = Outcome(part.name, "no time left", 0.0, "")
        outcomes[part] = run_part(part, words, min(part.seconds, left), folder) if left >= MARGIN else done
        print(f"{part.name}: {outcomes[part].status}, {outcomes[part].seconds:.0f} s", flush=True)
        (folder / "outcomes.json").write_text(json.dumps([asdict(each) for each in list(outcomes.values())], indent=1))

    with ThreadPoolExecutor(SIDE_BY_SIDE) as beside:
        list(beside.map(run, (part for part in parts if not part.times)))
    for part in parts:
        if part.times:
            run(part)
    return [outcomes[part] for part in parts]


def last_lines(log: str, count: int) -> list[str]:
    return Path(log).read_text(errors="replace").splitlines()[-count:] if log else []


def main() -> int:
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=names, default=names)
    parser.add_argument("--weights", choices=list(MAKERS), default="bf16", help="how the targets' lie in memory")
    parser.add_argument("--seconds", type=float, default=570.0, help="for everything together")
    parser.add_argument("--out", type=Path, default=Path("speed-out"), help="folder for logs and JSON")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU here")
    wanted = [part for part in PARTS if part.name in options.parts]
    options.out.mkdir(parents=True, exist_ok=True)
    outcomes = run_parts(wanted, options)
    for part, outcome in zip(wanted, outcomes, strict=True):
        print(f"\n=== {part.name}: {outcome.status}")
        print("\n".join(last_lines(outcome.log, part.shown)))
    print("\n" + "\n".join(f"{each.name:<26} {each.status:<22} {each.seconds:6.0f} s" for each in outcomes))
    return 0 if all(outcome.status == "ok" for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
