"""Files as older versions of the program left them, one of each kind: they open, and mean what they meant.

``NAME.events.jsonl`` are the events on the wire that the other files were written from. Never write these files anew:
what can't read them is wrong. ``trace-5.dft`` and ``session-partial.jsonl`` are those of the first version that knew
steps of which something is unknown, ``trace-6.dft`` and ``session-unsure.jsonl`` those of the first that attached to
servers, whose rounds are guesses until they are settled, ``session-versions.jsonl`` that of the first whose
conversations were trees. ``everything`` is what the last version before format 8 wrote of all that it knew: questions
refused at the beginning and in between, lookup, a stop, no drafts, wide rounds, MTP, trees, and a server's rounds
settled anew, confirmed, and never proved; ``trace-7-killed.dft`` is the same trace as a killed program left it.
``trace-8.dft`` and ``session-blocks.jsonl`` are of the last version whose blocks of rounds had whole columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from dflash_tui.core.sessions.sessions import SessionLog, load_session
from dflash_tui.core.traces.format import MAGIC
from dflash_tui.core.traces.reader import read_trace
from dflash_tui.core.traces.writer import TraceWriter
from engine.events import (
    EngineError,
    Event,
    Settled,
    Step,
    TurnFinished,
    TurnStarted,
    event_from_dict,
    event_to_dict,
    settled_steps,
)

STORED = Path(__file__).parent / "stored"
TRACES = {
    "trace-3.dft": "chains", "trace-4.dft": "trees", "trace-5.dft": "partial", "trace-6.dft": "unsure",
    "trace-7.dft": "everything", "trace-8.dft": "everything",
}  # fmt: skip
SESSIONS = {
    "session-chains.jsonl": "chains", "session-trees.jsonl": "trees", "session-partial.jsonl": "partial",
    "session-unsure.jsonl": "unsure", "session-blocks.jsonl": "everything",
}  # fmt: skip


def wire(name: str) -> list[str]:
    return (STORED / f"{name}.events.jsonl").read_text(encoding="utf-8").splitlines()


def events(name: str) -> list[Event]:
    return [event_from_dict(json.loads(line)) for line in wire(name)]


def kept(name: str) -> list[Event]:
    """The events, but each turn's steps as they were settled, and the settling itself without them, before errors."""
    told: list[Event] = []
    for event in events(name):
        if not isinstance(event, Settled):
            told.append(event)
            continue
        start = next(place for place, each in enumerate(told) if isinstance(each, Step) and each.turn == event.turn)
        before = [each for each in told[start:] if isinstance(each, Step)]
        errors = [each for each in told[start:] if isinstance(each, EngineError)]
        told[start:] = [*(settled_steps(event, before) or before), replace(event, steps=()), *errors]
    return told


@pytest.mark.parametrize("name", sorted(set(TRACES.values())))
def test_the_wire_is_what_it_was(name: str) -> None:
    said = [json.dumps(event_to_dict(event), ensure_ascii=False) for event in events(name)]
    assert said == wire(name)


@pytest.mark.parametrize(("file", "name"), TRACES.items())
def test_a_trace_of_each_version_opens(file: str, name: str) -> None:
    trace = read_trace(STORED / file)
    order = in_turns if file == "trace-8.dft" else list
    assert trace.problem is None and order(trace.events()) == order(kept(name))


@pytest.mark.parametrize("name", sorted(set(TRACES.values())))
def test_what_older_versions_knew_is_written_and_read_today(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.dft"
    writer = TraceWriter(path)
    for event in events(name):
        writer.record(event)
    writer.close()
    trace = read_trace(path)
    assert path.read_bytes().startswith(MAGIC + b"9\n") and trace.problem is None
    assert in_turns(trace.events()) == in_turns(kept(name))


def in_turns(told: Iterable[Event]) -> list[Event]:
    """In files before format 8, errors stood behind the ``Settled`` of their turn, now they stand where they came."""
    return sorted(told, key=lambda event: (getattr(event, "turn", 0), isinstance(event, EngineError | TurnFinished)))


@pytest.mark.parametrize(("file", "name"), SESSIONS.items())
def test_a_session_of_each_kind_of_step_opens(file: str, name: str) -> None:
    conversation = load_session(STORED / file)
    rounds = [event for event in kept(name) if isinstance(event, Step | Settled)]
    found = [list(turn.events() or ()) for turn in conversation.turns]
    assert [event for turn in found for event in turn if isinstance(event, Step | Settled)] == rounds
    answers = [event.text for event in events(name) if isinstance(event, TurnFinished)]
    assert [turn.answer for turn in conversation.turns] == answers


def test_a_trace_that_a_killed_program_left_opens_up_to_there() -> None:
    trace = read_trace(STORED / "trace-7-killed.dft")
    told = list(trace.events())
    assert trace.problem == "The trace was cut short, after 90 steps. This is everything up to there."
    assert len(told) == 115 and told == kept("everything")[: len(told)]
    assert [type(event) for event in trace.ending] == [EngineError, TurnFinished]


def test_a_session_of_everything_opens() -> None:
    """Turns 1 to 13 are the events; it was titled, branched, and gone on with in turn 15, in which it was killed."""
    conversation = load_session(STORED / "session-everything.jsonl")
    tree, said = conversation.tree, kept("everything")
    assert (conversation.name, conversation.damaged, conversation.last_turn) == ("All of it", 0, 15)
    assert (tree[4].once, tree[5].name) == (True, "another way")
    assert [tree[turn].parent for turn in (5, 8, 9)] == [3, 0, 3]
    assert [run.output for run in tree[4].runs] == ["[1, 2, 3]\n"] and 14 not in tree
    assert [file.name for file in tree[3].beside.files] == ["notes.txt"] and tree[7].beside.left_out == (3,)
    for turn in range(1, 14):
        of_turn = [event for event in said if getattr(event, "turn", None) == turn]
        rounds, end = [event for event in of_turn if isinstance(event, Step | Settled)], of_turn[-1]
        assert isinstance(end, TurnFinished)
        assert (tree[turn].reason, tree[turn].answer, tree[turn].thought) == (end.reason, end.text, end.thought)
        assert (tree[turn].error is not None) == any(isinstance(event, EngineError) for event in of_turn)
        assert [event for event in tree[turn].events() or () if isinstance(event, Step | Settled)] == rounds
    killed = [event for event in tree[15].events() or () if isinstance(event, Step)]
    assert tree[15].reason is None
    assert killed == [replace(event, turn=15) for event in said if isinstance(event, Step) and event.turn == 9][:2]


def test_a_session_with_versions_opens() -> None:
    """The events twice: the second time as versions of the first questions, under a name. It stands at the first."""
    conversation = load_session(STORED / "session-versions.jsonl")
    answers = [event.text for event in events("chains") if isinstance(event, TurnFinished)]
    count = len(answers)
    first, again = conversation.tree[1], conversation.tree[1 + count]
    assert [turn.answer for turn in conversation.tree] == answers * 2 and conversation.damaged == 0
    assert (again.parent, again.name, again.once, again.system) == (0, "again", True, "Be brief.")
    assert (first.parent, first.name, first.once) == (0, "", False) and conversation.turns == (first,)
    steps = [event for event in again.events() or () if isinstance(event, Step)]
    assert [replace(step, turn=1) for step in steps] == [
        event for event in first.events() or () if isinstance(event, Step)
    ]


def test_a_session_of_text_alone_opens() -> None:
    """The first version of the program kept no rounds."""
    conversation = load_session(STORED / "session-text.jsonl")
    answers = [event.text for event in events("chains") if isinstance(event, TurnFinished)]
    assert [turn.answer for turn in conversation.turns] == answers
    assert all(turn.events() is None for turn in conversation.turns)


@pytest.mark.parametrize("name", sorted(set(TRACES.values())))
def test_a_session_keeps_today_what_older_versions_kept(name: str, tmp_path: Path) -> None:
    log, asked = SessionLog(tmp_path / "run.jsonl"), 0
    for event in events(name):
        if (turn := getattr(event, "turn", None)) and turn > asked:
            log.user(asked := turn, event.question if isinstance(event, TurnStarted) else "refused")
        log.record(event)
    log.close()
    told = [event for turn in load_session(log.path).turns for event in turn.events() or ()]
    assert [event for event in told if isinstance(event, Step | Settled)] == [
        event for event in kept(name) if isinstance(event, Step | Settled)
    ]
