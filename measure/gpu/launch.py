"""A process that loads a pair as the program does, and says when it was ready: ``python -m measure.gpu.launch FOLDER``.

Prints one JSON object: seconds from the process's start to the first line of Python, to the imports, and to ready. On
stderr, what the process beside did, and each kernel that the program compiled all the same: milliseconds, and what.
"""

from __future__ import annotations

import time

FIRST_LINE = time.time()

import json  # noqa: E402  (what comes after the clock is what is measured)
import logging  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from engine.commands import EngineOptions  # noqa: E402
from engine.events import EngineError, EngineReady, Event  # noqa: E402
from engine.service import EngineService  # noqa: E402


def process_start() -> float:
    """Seconds since the epoch, by the kernel's own books."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")


def main() -> int:
    folder, device = Path(sys.argv[1]), sys.argv[2]
    logging.basicConfig(format="%(relativeCreated)6d %(message)s")
    for name in ("engine.loading.precompile", "engine.kernels.toolchain.disk_cache"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    events: list[Event] = []
    moments: dict[str, float] = {"python": FIRST_LINE, "imports": time.time()}

    def emit(event: Event) -> None:
        phase = getattr(event, "phase", type(event).__name__)
        moments.setdefault(phase, time.time())
        events.append(event)

    service = EngineService(EngineOptions(str(folder / "target"), str(folder / "drafter"), device), emit)
    service.start()
    while not (events and isinstance(events[-1], EngineReady | EngineError)):
        time.sleep(0.01)
    begun = process_start()
    ready = isinstance(events[-1], EngineReady)
    print(json.dumps({"ready": ready, **{name: round(at - begun, 2) for name, at in moments.items()}}))
    if not ready:
        print(events[-1], file=sys.stderr)
    sys.stdout.flush()
    os._exit(0 if ready else 1)


if __name__ == "__main__":
    sys.exit(main())
