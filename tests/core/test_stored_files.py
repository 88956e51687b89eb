"""Files as older versions of the program left them, one of each kind: they open, and mean what they meant.

``NAME.events.jsonl`` are the events on the wire that the other files were written from. Never write these files anew:
what can't read them is wrong. ``trace-5.dft`` and ``session-partial.jsonl`` are those of the first version that knew
steps of which something is unknown.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dflash_tui.core.sessions.sessions import SessionLog, load_session
from dflash_tui.core.traces.reader import read_trace
from dflash_tui.core.traces.writer import TraceWriter
from engine.events import Event, Step, TurnFinished, TurnStarted, event_from_dict, event_to_dict

STORED = Path(__file__).parent / "stored"
TRACES = {"trace-3.dft": "chains", "trace-4.dft": "trees", "trace-5.dft": "partial"}
SESSIONS = {"session-chains.jsonl": "chains", "session-trees.jsonl": "trees", "session-partial.jsonl": "partial"}


def wire(name: str) -> list[str]:
    return (STORED / f"{name}.events.jsonl").read_text(encoding="utf-8").splitlines()


def events(name: str) -> list[Event]:
    return [event_from_dict(json.loads(line)) for line in wire(name)]


def after_header(path: Path) -> bytes:
    """A trace without its first frame, which says when and with what it was made. Lines behind it depend on those."""
    return path.read_bytes().partition(b"\n")[0]


@pytest.mark.parametrize("name", sorted(set(TRACES.values())))
def test_the_wire_is_what_it_was(name: str) -> None:
    said = [json.dumps(event_to_dict(event), ensure_ascii=False) for event in events(name)]
    assert said == wire(name)


@pytest.mark.parametrize(("file", "name"), TRACES.items())
def test_a_trace_of_each_version_opens(file: str, name: str) -> None:
    trace = read_trace(STORED / file)
    assert trace.problem is None and list(trace.events()) == events(name)


@pytest.mark.parametrize(("file", "name"), TRACES.items())
def test_a_trace_is_written_in_the_lowest_version_that_holds_it(file: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / file
    writer = TraceWriter(path)
    for event in events(name):
        writer.record(event)
    writer.close()
    assert after_header(path) == after_header(STORED / file)
    assert list(read_trace(path).events()) == events(name)


@pytest.mark.parametrize(("file", "name"), SESSIONS.items())
def test_a_session_of_each_kind_of_step_opens(file: str, name: str) -> None:
    conversation = load_session(STORED / file)
    steps = [event for event in events(name) if isinstance(event, Step)]
    kept = [list(turn.events() or ()) for turn in conversation.turns]
    assert [event for turn in kept for event in turn if isinstance(event, Step)] == steps
    answers = [event.text for event in events(name) if isinstance(event, TurnFinished)]
    assert [turn.answer for turn in conversation.turns] == answers


def test_a_session_of_text_alone_opens() -> None:
    """The first version of the program kept no rounds."""
    conversation = load_session(STORED / "session-text.jsonl")
    answers = [event.text for event in events("chains") if isinstance(event, TurnFinished)]
    assert [turn.answer for turn in conversation.turns] == answers
    assert all(turn.events() is None for turn in conversation.turns)


@pytest.mark.parametrize(("file", "name"), SESSIONS.items())
def test_the_lines_of_a_session_are_what_they_were(file: str, name: str, tmp_path: Path) -> None:
    log = SessionLog(tmp_path / file)
    for event in events(name):
        if isinstance(event, TurnStarted):
            log.user(event.turn, event.question)
        log.record(event)
    log.close()
    assert timeless(tmp_path / file) == timeless(STORED / file)


def timeless(path: Path) -> list[str]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [json.dumps({key: line[key] for key in line if key not in ("time", "created")}) for line in lines]
