"""A process that loads a pair as the program does, and says when it was ready: ``python -m measure.gpu.launch FOLDER
DEVICE``.

Prints one JSON object: seconds from the process's start to the first line of Python, to the imports, to each event that
is told of, and to ready. On stderr, what the process beside did, and each kernel that the program compiled all the
same: milliseconds, and what. Then, for each span between two of those moments, how many modules were imported by its
end.
"""

from __future__ import annotations

import time

FIRST_LINE = time.time()

import json  # noqa: E402  (what comes after the clock is what is measured)
import logging  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from dataclasses import dataclass, field  # noqa: E402
from itertools import pairwise  # noqa: E402
from pathlib import Path  # noqa: E402

from engine.commands import EngineOptions  # noqa: E402
from engine.events import EngineError, EngineReady, Event, LoadProgress  # noqa: E402
from engine.service import EngineService  # noqa: E402

HEAVY = ("torch", "torch._dynamo", "torch._inductor", "triton", "transformers", "huggingface_hub", "sympy")
"""Modules whose import is reported."""
WIDTH = 40
"""Characters of an event that are printed."""


@dataclass(frozen=True)
class Moment:
    """The first time of an event, and what had been done by then."""

    name: str
    at: float
    modules: int = field(default_factory=lambda: len(sys.modules))
    heavy: tuple[str, ...] = field(default_factory=lambda: tuple(name for name in HEAVY if name in sys.modules))


def process_start() -> float:
    """When the process started, in seconds since the epoch, as the kernel says."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")


def tell(moments: list[Moment], begun: float) -> None:
    """Prints on stderr where the time went."""
    for before, moment in pairwise(moments):
        span = f"{before.at - begun:6.2f} to {moment.at - begun:.2f}"
        new = [name for name in moment.heavy if name not in before.heavy]
        has_come = f", {', '.join(new)} among them" if new else ""
        print(f"{span}, until {moment.name[:WIDTH]}: {moment.modules} modules{has_come}", file=sys.stderr)
    if sys.dont_write_bytecode:
        print("Python was told to keep no bytecode: what has none is compiled at every start", file=sys.stderr)


def main() -> int:
    folder, device = Path(sys.argv[1]), sys.argv[2]
    logging.basicConfig(format="%(relativeCreated)6d %(message)s")
    for name in ("engine.loading.precompile", "engine.kernels.toolchain.disk_cache"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    events: list[Event] = []
    moments = [Moment("python", FIRST_LINE), Moment("imports", time.time())]

    def emit(event: Event) -> None:
        phase = event.phase if isinstance(event, LoadProgress) else type(event).__name__
        if all(phase != moment.name for moment in moments):
            moments.append(Moment(phase, time.time()))
        events.append(event)

    service = EngineService(EngineOptions(str(folder / "target"), str(folder / "drafter"), device), emit)
    service.start()
    while not (events and isinstance(events[-1], EngineReady | EngineError)):
        time.sleep(0.01)
    begun = process_start()
    ready = isinstance(events[-1], EngineReady)
    tell(moments, begun)
    print(json.dumps({"ready": ready, **{moment.name: round(moment.at - begun, 2) for moment in moments}}))
    if not ready:
        print(events[-1], file=sys.stderr)
    sys.stdout.flush()
    os._exit(0 if ready else 1)


if __name__ == "__main__":
    sys.exit(main())
