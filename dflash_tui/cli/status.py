"""What headless mode tells people on stderr: loading while it lasts, and one line of figures at the end."""

from __future__ import annotations

import sys

from engine.events import EngineReady, Event, FinishReason, LoadProgress, TurnFinished, TurnStatistics

_CLEAR_LINE = "\r\x1b[K"
_ENDED_BY: dict[FinishReason, str] = {
    "length": "ended by --max-new-tokens",
    "context": "ended because the context is full",
    "stopped": "stopped",
    "error": "ended by an error",
}


class StatusLine:
    """Progress is drawn, and wiped again, on a terminal only: in a log it would be noise."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()

    def show(self, event: Event) -> None:
        match event:
            case LoadProgress() if self._terminal:
                self._write(f"{_CLEAR_LINE}{describe_progress(event)}")
            case EngineReady() if self._terminal:
                models = event.target if event.drafter is None else f"{event.target} + {event.drafter}"
                banner = f"\n{event.banner}" if event.banner else ""
                self._write(f"{_CLEAR_LINE}{models} on {event.device}, {event.dtype}{banner}\n")
            case TurnFinished():
                self._write(f"{describe_turn(event.statistics, event.reason)}\n")

    def clear(self) -> None:
        """Wipe what is left of a progress line before something else is printed."""
        if self._terminal:
            self._write(_CLEAR_LINE)

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def describe_progress(progress: LoadProgress) -> str:
    if progress.total <= 0:
        return progress.phase
    if progress.unit == "bytes":
        return f"{progress.phase}: {progress.done / 1e6:.0f} of {progress.total / 1e6:.0f} MB"
    return f"{progress.phase}: {progress.done} of {progress.total}"


def describe_turn(statistics: TurnStatistics, reason: FinishReason) -> str:
    parts = [
        f"{statistics.num_tokens} tokens",
        f"{statistics.tok_s:.0f} tok/s",
        f"first token {statistics.ttft_ms:.0f} ms",
    ]
    if statistics.num_spec_steps:
        parts.append(f"acceptance length {statistics.mean_acceptance_length:.2f}")
    if reason in _ENDED_BY:
        parts.append(_ENDED_BY[reason])
    return " · ".join(parts)
