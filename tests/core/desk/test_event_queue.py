"""What the engine says is written once: session, trace and the screen's history hold the same bytes."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

from dflash_tui.core.conversation.reducer import Reducer
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.replay.recording import read_recording
from dflash_tui.core.sessions.sessions import SessionLog
from engine.events import Step, TurnFinished, TurnStarted
from support.events_for_tests import make_step


def test_history_session_and_trace_share_their_blocks(tmp_path: Path) -> None:
    log, trace = SessionLog.create(tmp_path), SessionLog.record_into(tmp_path / "run.jsonl")
    queue = EventQueue(log, trace)
    reducer = Reducer(queue.rounds_of)
    counted = [make_step(index % 4, 5, index=index, time=index / 10) for index in range(70)]
    for turn, steps in ((1, counted), (2, [replace(step, turn=2) for step in counted])):
        log.user(turn, "go on")
        queue.put(TurnStarted(turn, 3, 0, {}, "go on"))
        for step in steps:
            queue.put(step)
        for event in queue.take(1000):
            reducer.apply(event)
        assert reducer.turn is not None and list(reducer.turn.rounds) == steps
        queue.put(TurnFinished(turn, "stop", "".join(token.text for step in steps for token in step.emitted)))
    queue.log.close()
    trace.close()
    kept = [block for turn in reducer.turns for block in turn.rounds.blocks]
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    written = [b64decode(line) for line in lines if isinstance(line, str)]
    assert len(kept) == 4 and kept == written
    told = [event for event in read_recording(trace.path).events() if isinstance(event, Step)]
    assert told == [*counted, *(replace(step, turn=2) for step in counted)]
