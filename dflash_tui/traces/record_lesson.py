"""``python -m dflash_tui.traces.record_lesson``: runs the bundled pair and writes the bundled lesson's recording. Each
question is a conversation of its own behind a short unrecorded one, so the engine is warm and its caches hold
nothing."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from dflash_tui.core.sessions.sessions import SessionLog
from engine.commands import MAX_BLOCK_SIZE, EngineOptions, GenerationSettings, Message
from engine.events import Event, TurnFinished

from .record_traces import Answering

TRACE = Path(__file__).with_name("lesson.jsonl")
CODE, TALK = "Write a quicksort in Python", "What is a compiler?"
GREEDY = GenerationSettings(block_size=MAX_BLOCK_SIZE, max_new_tokens=256)
SAMPLED = replace(GREEDY, temperature=1.0, seed=3)
RUNS = 9
"""How often each question is asked, in turns. The fastest run is kept: other work can only slow one down."""

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
    """Answer every question and write the recording."""
    runs: dict[int, list[list[Event]]] = {turn: [] for turn in range(1, len(TURNS) + 1)}
    with closing(Answering(EngineOptions())) as engine:
        for _ in range(RUNS):
            for turn, (question, settings) in enumerate(TURNS, start=1):
                engine.warm_up(settings)
                runs[turn].append(engine.answer(turn, (Message("user", question),), settings))
        fastest = [event for turn in runs for event in min(runs[turn], key=_decode_ms)]
        log = SessionLog.record_into(path)
        for event in [*engine.loading, *fastest]:
            log.record(event)
        log.close()


def _decode_ms(events: list[Event]) -> float:
    finished = events[-1]
    assert isinstance(finished, TurnFinished)
    return finished.statistics.decode_ms


if __name__ == "__main__":
    unfinished = TRACE.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    record(unfinished)
    unfinished.replace(TRACE)
    print(f"{TRACE}: {TRACE.stat().st_size} bytes", file=sys.stderr)
