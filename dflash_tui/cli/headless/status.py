"""What headless mode tells people on stderr: loading while it lasts, and one line of figures at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from dflash_tui.core.figures.labels import accepted_share
from dflash_tui.core.figures.statistics import CLOCKS
from dflash_tui.core.progress import describe_amount
from dflash_tui.core.text.counted import counted
from dflash_tui.core.text.harmless import signed
from engine.events import Clock, EngineReady, Event, FinishReason, LoadProgress, Notice, TurnFinished

from ..terminal.saying import remark

LOG_SECONDS = 10.0
"""Seconds between two lines of progress in a log."""
_CLEAR_LINE = "\r\x1b[K"
_ENDED_BY: dict[FinishReason, str] = {
    "length": "ended by --max-new-tokens",
    "context": "ended because the context is full (--context makes room for more)",
    "stopped": "stopped",
    "error": "ended by an error",
}
_WHOSE_TIMES: dict[Clock, tuple[str, ...]] = {
    "engine": (),
    "server": (f"rounds{CLOCKS['server']}, the rest{CLOCKS['arrival']}",),
    "arrival": (f"times{CLOCKS['arrival']}",),
}


class ProgressLine:
    """Progress is drawn, and wiped again, on a terminal only: in a log it would be noise."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._drawn = False
        self._finished: TurnFinished | None = None
        self._ready: EngineReady | None = None
        self._notes: list[str] = []

    def show(self, event: Event) -> None:
        match event:
            case LoadProgress() if self._terminal:
                self._write(describe_progress(event) + ("\n" if event.remark else ""))
                self._drawn = not event.remark
            case EngineReady():
                self._ready = event
                self._write(f"{describe_models(event)}\n" if self._terminal else "")
            case Notice():
                note = f"{event.message}\n  {event.advice}" if event.advice else event.message
                self._write(f"{note}\n") if event.ahead else self._notes.append(note)
                self._drawn = False
            case TurnFinished():
                self._finished = event

    def counting(self, phase: str) -> Callable[[int, int], None]:
        """A function that shows, as progress of ``phase``, how many of how many are done."""
        return lambda done, total: self.show(LoadProgress(phase, done, total))

    def finish(self) -> None:
        """Print the turn's figures, if any, once the answer is complete: the two never share a line."""
        finished = self._finished
        figures = describe_turn(finished, self._ready) if finished and finished.statistics.num_tokens else ""
        self._write("".join(f"{line}\n" for line in (figures, *self._notes) if line))

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{_CLEAR_LINE * self._drawn}{signed(text)}")
        sys.stderr.flush()
        self._drawn = False


class LoggedProgress:
    """Progress as a line that is redrawn on a terminal, and repeated now and then in a log, which is none."""

    def __init__(self) -> None:
        self._status = ProgressLine()
        self._logged = -LOG_SECONDS

    def show(self, progress: LoadProgress) -> None:
        self._status.show(progress)
        now = time.monotonic()
        if not sys.stderr.isatty() and (now - self._logged >= LOG_SECONDS or progress.done == progress.total):
            self._logged = now
            remark(describe_progress(progress))

    def close(self) -> None:
        self._status.finish()


def describe_models(ready: EngineReady) -> str:
    if ready.server:
        return f"{ready.target} on {ready.dialect or 'a server'} at {ready.server}"
    models = ready.target if ready.drafter is None else f"{ready.target} + {ready.drafter}"
    return f"{models} on {ready.device}, {ready.dtype}" + (f"\n{ready.banner}" if ready.banner else "")


def describe_progress(progress: LoadProgress) -> str:
    amount = describe_amount(progress)
    return f"{progress.phase}: {amount}" if amount else progress.phase


def describe_turn(finished: TurnFinished, ready: EngineReady | None = None) -> str:
    statistics = finished.statistics
    parts = [
        counted(statistics.num_tokens, "token"),
        f"{statistics.tok_s:.0f} tok/s",
        f"first token {statistics.ttft_ms:.0f} ms",
    ]
    if accepted := accepted_share(statistics):
        parts.append(accepted)
    if finished.reason in _ENDED_BY:
        served = finished.reason == "context" and ready is not None and ready.server
        parts.append("ended because the context is full" if served else _ENDED_BY[finished.reason])
    if ready is not None and ready.server:
        parts += [*_WHOSE_TIMES[ready.times], describe_models(ready)]
    return " · ".join(parts)
