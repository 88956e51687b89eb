"""The program as it is, in a process that notes when it got where: ``check_start.py`` starts it and reads the notes.

Nothing here is heavier than the program's own first lines.
"""

from __future__ import annotations

import time

FIRST_LINE = time.time()

import json  # noqa: E402  (what comes after the clock is what is measured)
import os  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
from collections.abc import Callable  # noqa: E402
from contextlib import suppress  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import engine.service  # noqa: E402
from dflash_tui.cli.main import main  # noqa: E402
from engine.commands import Ask, Command, EngineOptions  # noqa: E402
from engine.errors import Words  # noqa: E402
from engine.events import Event, LoadProgress, Step  # noqa: E402

PIECES = {
    "target read": ("engine.loading.checkpoint", "load_target"),
    "drafter read": ("engine.loading.checkpoint", "load_drafter"),
    "kernels brought to the GPU beside": ("engine.kernels.toolchain.disk_cache", "prepared"),
    "products tried": ("engine.loading.choose_rounds", "products_depart"),
    "prompt tried": ("engine.loading.choose_rounds", "_read_prompt"),
    "rounds tried": ("engine.loading.choose_rounds", "_run_rounds"),
    "graphs recorded, some of them in these": ("engine.decoding.round_launches", "captured"),
    "costs known or timed": ("engine.runner", "known_costs"),
}
"""Functions that a start spends its time in, by what they do: module and name."""


class Notes:
    """Notes moments, in seconds since the process began, and what each thread of Python had computed by then."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun = process_start()
        self.moments: dict[str, float] = {"python": FIRST_LINE - self._begun}
        self.spent: dict[str, dict[str, float]] = {}
        self.pieces: dict[str, list[tuple[float, float]]] = {what: [] for what in PIECES}
        """When each call of a function began, and its seconds."""

    def note(self, what: str) -> None:
        """Notes a moment, the first time that it comes."""
        if what not in self.moments:
            self.moments[what] = time.time() - self._begun
            self.spent[what] = processor_seconds()

    def watch_pieces(self) -> None:
        """Times the calls of ``PIECES`` from now on. Their modules must be imported."""
        for what, (module, name) in PIECES.items():
            if (found := sys.modules.get(module)) is not None:
                setattr(found, name, self._timed(what, getattr(found, name)))

    def _timed(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            begun = time.time()
            try:
                return function(*arguments, **named)
            finally:
                self.pieces[what].append((begun - self._begun, time.time() - begun))

        return timed

    def write(self) -> None:
        noted = {"begun": self._begun, "moments": self.moments, "spent": self.spent, "pieces": self.pieces}
        self._path.write_text(json.dumps(noted))


def process_start() -> float:
    """When the process started, in seconds since the epoch, as the kernel says."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")


def processor_seconds() -> dict[str, float]:
    """Processor seconds by thread name; threads of one kind together, and ``all`` of the process."""
    spent = {"all": time.process_time()}
    for thread in threading.enumerate():
        kind = thread.name.rstrip("_0123456789-")
        with suppress(OSError):  # the thread may have ended
            clock = time.pthread_getcpuclockid(thread.ident or 0)
            spent[kind] = spent.get(kind, 0.0) + time.clock_gettime(clock)
    return spent


def watched(notes: Notes, rest: float) -> type[engine.service.EngineService]:
    """The engine's service, with its moments noted as they come. Each question is held back for ``rest`` seconds."""

    class Watched(engine.service.EngineService):
        def __init__(self, options: EngineOptions, emit: Callable[[Event], None], words: Words = str) -> None:
            def noted(event: Event) -> None:
                phase = event.phase if isinstance(event, LoadProgress) else type(event).__name__
                if phase == "finding the model" and phase not in notes.moments:
                    notes.watch_pieces()
                notes.note(phase)
                emit(event)
                if isinstance(event, Step):
                    notes.write()

            super().__init__(options, noted, words)

        def start(self) -> None:
            notes.note("engine begins")
            super().start()

        def send(self, command: Command) -> None:
            if isinstance(command, Ask):
                time.sleep(rest)
                notes.note("asked")
            super().send(command)

    return Watched


def run(notes: Path, rest: float, arguments: list[str]) -> int:
    """Runs the program with these arguments; writes its notes to a file."""
    engine.service.EngineService = watched(Notes(notes), rest)  # type: ignore[misc]
    return main(arguments)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
