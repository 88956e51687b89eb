"""``python -m dflash_tui.cli.record_lesson``: runs the bundled pair and writes the trace of the bundled lesson.

Every question starts a conversation of its own. A short one goes before it, unrecorded, so that each is answered by a
warm engine whose caches hold nothing of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from dflash_tui.core.traces.writer import TraceWriter
from engine.commands import Ask, Close, EngineOptions, GenerationSettings, Message
from engine.events import EngineError, EngineReady, Event, TurnFinished
from engine.service import EngineService

TRACE = Path(__file__).parents[1] / "traces" / "lesson.dft"
CODE, TALK = "Write a quicksort in Python", "What is a compiler?"
GREEDY = GenerationSettings(max_new_tokens=256)
SAMPLED = replace(GREEDY, temperature=1.0, seed=3)
WARM_UP = Message("user", "Hi")
WARM_UP_TOKENS = 16
RUNS = 9
"""Of each question, in turns. The fastest is kept: what else the machine does can only slow a run down."""

TURNS: tuple[tuple[str, GenerationSettings], ...] = (
    (CODE, replace(GREEDY, speculation=False)),
    (CODE, GREEDY),
    (TALK, replace(GREEDY, speculation=False)),
    (TALK, GREEDY),
    (TALK, replace(GREEDY, block_size=4)),
    (CODE, replace(SAMPLED, speculation=False)),
    (CODE, SAMPLED),
)
"""The lesson's text counts on this order."""


def record(path: Path) -> None:
    """Answer every question and write the trace. Raises ``RuntimeError`` when the engine fails."""
    inbox: SimpleQueue[Event] = SimpleQueue()
    engine = EngineService(EngineOptions(), inbox.put)
    engine.start()
    trace = TraceWriter(path)
    for event in _until(inbox, EngineReady):
        trace.record(event)
    runs: dict[int, list[list[Event]]] = {turn: [] for turn in range(1, len(TURNS) + 1)}
    for _ in range(RUNS):
        for turn, (question, settings) in enumerate(TURNS, start=1):
            runs[turn].append(_answer(engine, inbox, turn, question, settings))
    for turn in runs:
        for event in min(runs[turn], key=_decode_ms):
            trace.record(event)
    trace.close()
    engine.send(Close())
    engine.join()


def _answer(
    engine: EngineService, inbox: SimpleQueue[Event], turn: int, question: str, settings: GenerationSettings
) -> list[Event]:
    engine.send(Ask(0, (WARM_UP,), replace(settings, max_new_tokens=WARM_UP_TOKENS)))
    list(_until(inbox, TurnFinished))
    engine.send(Ask(turn, (Message("user", question),), settings))
    return list(_until(inbox, TurnFinished))


def _decode_ms(events: list[Event]) -> float:
    finished = events[-1]
    assert isinstance(finished, TurnFinished)
    return finished.statistics.decode_ms


def _until(inbox: SimpleQueue[Event], last: type[Event]) -> Iterator[Event]:
    while True:
        event = inbox.get()
        yield event
        if isinstance(event, EngineError):
            raise RuntimeError(event.message)
        if isinstance(event, last):
            return


if __name__ == "__main__":
    unfinished = TRACE.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    record(unfinished)
    unfinished.replace(TRACE)
    print(f"{TRACE}: {TRACE.stat().st_size} bytes", file=sys.stderr)
