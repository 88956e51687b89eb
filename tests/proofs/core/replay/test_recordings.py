from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui.core.conversation.reducer import Reducer
from dflash_tui.core.replay.recording import Recording, RecordingError, read_recording
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import StepBatch
from engine.events import (
    EngineError,
    Event,
    LoadProgress,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
)
from tests.core.replay.steps import READY, SETTINGS, long_run, turns
from tests.pace import examples

REFUSALS = (
    EngineError("server", "The server takes no more questions for now (status 429).", "Ask again in 3 seconds."),
    EngineError("generation", "It broke.", "Ask again."),
    EngineError("usage", "The conversation does not fit into the context.", "Start another."),
)


def refused(turn: int, error: EngineError) -> list[Event]:
    """What is said of a question that was refused before its turn began."""
    return [replace(error, turn=turn), TurnFinished(turn, "error", "")]


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    """The events of a program's run: up to three turns, ending in any way, or refused before they began."""
    events: list[Event] = [LoadProgress("read", 1, 2), READY]
    for number in range(1, draw(st.integers(1, 3)) + 1):
        if draw(st.booleans()):
            events += refused(number, draw(st.sampled_from(REFUSALS)))
            continue
        question = draw(st.text(max_size=20))
        steps = [replace(step, turn=number) for step in draw(turns())]
        events += [TurnStarted(number, 40, 12, SETTINGS, question), PrefillDone(number, 12.5), *steps]
        if draw(st.booleans()):
            events.append(EngineError("generation", "It broke.", "Ask again.", turn=number))
        text = draw(st.none() | st.text(max_size=5))
        joined = "".join(t.text for step in steps for t in step.emitted if t.channel == "answer")
        thought = "".join(t.text for step in steps for t in step.emitted if t.channel == "thought")
        statistics = TurnStatistics(num_tokens=7, acceptance_histogram=(1, 2), tok_s=150.04)
        events.append(TurnFinished(number, "stop", joined if text is None else text, thought, statistics))
    return events


def recorded(events: list[Event], path: Path) -> bytes:
    path.unlink(missing_ok=True)
    writer = SessionLog.record_into(path)
    for event in events:
        writer.record(event)
    writer.close()
    assert writer.failure is None
    return path.read_bytes()


def replayed(events: list[Event]) -> Recording:
    with TemporaryDirectory() as folder:
        recorded(events, Path(folder) / "run.jsonl")
        return read_recording(Path(folder) / "run.jsonl")


def state(reducer: Reducer) -> tuple[object, ...]:
    """Everything that the screen is drawn from."""
    turns = [
        (t.text, t.snapshot, list(t.rounds), t.latest, t.latest_drafted, t.reason, t.error, t.started, t.finished)
        for t in reducer.turns
    ]
    return (reducer.phase, reducer.ready, reducer.failure, turns, reducer.take_spans())


@given(runs())
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
def test_a_replay_shows_what_the_run_showed_at_every_step(events: list[Event]) -> None:
    trace = replayed(events)
    assert trace.problem is None and trace.program
    live, again = Reducer(), Reducer()
    live.apply(events[0])
    for event, copy in zip(events[1:], trace.events(), strict=True):
        live.apply(event)
        again.apply(copy)
        assert copy == event
    again.loading = live.loading
    assert state(again) == state(live)


@given(runs(), st.data())
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
def test_a_jump_leads_to_what_playing_leads_to(events: list[Event], data: st.DataObject) -> None:
    """From any event to any later one: the same state, and playing on from there stays the same."""
    trace = replayed(events)
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(trace))] * 2)))
    played, jumped = Reducer(), Reducer()
    copies = list(trace.events())
    for event in copies[:stop]:
        played.apply(event)
    for happening in (*copies[:start], *trace.happenings(start, stop)):
        jumped.apply(happening)
    assert state(jumped) == state(played)
    for event in copies[stop:]:
        played.apply(event)
        jumped.apply(event)
    assert state(jumped) == state(played)


@given(runs(), st.data())
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
def test_steps_are_found_by_batch_by_turn_and_from_anywhere(events: list[Event], data: st.DataObject) -> None:
    trace = replayed(events)
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(trace))] * 2)))
    told = list(trace.happenings(start, stop))
    batches = [happening for happening in told if isinstance(happening, StepBatch)]
    flat = [event for each in told for event in (each.steps() if isinstance(each, StepBatch) else (each,))]
    assert flat == list(trace.events())[start:stop]
    assert all(step.turn == batch.turn for batch in batches for step in batch.steps())
    assert not any(isinstance(event, Step) for event in told)
    assert list(trace.events(start)) == list(trace.events())[start:]
    numbers = [number for number, event in enumerate(trace.events()) if isinstance(event, Step)]
    assert [trace.number_of_step(step) for step in range(len(trace.steps))] == numbers
    reducer, steps = Reducer(), list(trace.steps)
    for event in trace.events():
        reducer.apply(event)
    for turn in reducer.turns:
        places = trace.steps_of_turn(turn.number)
        assert steps[places.start : places.stop] == list(turn.rounds)
    assert not trace.steps_of_turn(99)


def test_a_recording_cut_anywhere_plays_up_to_the_cut_and_says_so(tmp_path: Path) -> None:
    path, events = tmp_path / "run.jsonl", long_run()
    writer = SessionLog.record_into(path)
    for event in events[:20]:
        writer.record(event)
    data = path.read_bytes()
    writer.close()
    begun, read_before = data.index(b"TurnStarted"), 0
    for length in (*range(data.index(b"\n") + 1, len(data) - 1, 61), len(data) - 1):
        path.write_bytes(data[:length])
        try:
            recording = read_recording(path)
        except RecordingError:
            assert length < begun + 300  # nothing of it had come yet
            continue
        assert recording.problem is not None and "ends within" in recording.problem
        rounds = list(recording.steps)
        assert rounds == events[3 : 3 + len(rounds)] and len(rounds) >= read_before
        read_before = len(rounds)
    assert read_before == 16, "the last line was cut"


def test_recordings_of_another_version_are_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for data, age in ((b"dflash-trace 9\n\0", "older"), (b'{"type":"session","version":2,"created":""}\n', "older"),
                      (b'{"type":"session","version":99,"created":""}\n', "newer")):  # fmt: skip
        path.write_bytes(data)
        with pytest.raises(RecordingError, match=f"an? {age} dflash-chat"):
            read_recording(path)
