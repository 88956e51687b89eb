from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui.core.conversation.reducer import Reducer, TurnState
from dflash_tui.core.records.blocks import ROUNDS
from dflash_tui.core.source import StepBatch
from dflash_tui.core.traces.format import FORMAT_VERSION, MAGIC
from dflash_tui.core.traces.reader import Trace, TraceError, read_trace
from dflash_tui.core.traces.writer import TraceWriter, turn_events, write_conversation
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
from support.events_for_tests import make_step
from tests.core.traces.steps import READY, SETTINGS, long_run, read, turns
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
    writer = TraceWriter(path)
    for event in events:
        writer.record(event)
    writer.close()
    assert writer.failure is None
    return path.read_bytes()


def replayed(events: list[Event]) -> Trace:
    with TemporaryDirectory() as folder:
        return read(recorded(events, Path(folder) / "run.dft"))


def state(reducer: Reducer) -> tuple[object, ...]:
    """Everything that the screen is drawn from."""
    turns = [
        (t.text, t.snapshot, list(t.history), t.latest, t.latest_drafted, t.reason, t.error, t.started, t.finished)
        for t in reducer.turns
    ]
    return (reducer.phase, reducer.ready, reducer.failure, turns, reducer.take_spans())


@given(runs())
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
def test_a_replay_shows_what_the_run_showed_at_every_step(events: list[Event]) -> None:
    trace = replayed(events)
    assert trace.problem is None and trace.header.source == "engine"
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
        assert steps[places.start : places.stop] == list(turn.history)
    assert not trace.steps_of_turn(99)


def test_a_trace_cut_at_any_byte_replays_up_to_the_cut_and_says_so(tmp_path: Path) -> None:
    events = long_run()
    data = recorded(events, tmp_path / "run.dft")
    read_before, lengths = 0, set()
    for length in (*range(0, len(data) - 1, 4), len(data) - 1):
        try:
            trace = read(data[:length])
        except TraceError:
            assert read_before == 0  # nothing of it had come yet
            continue
        assert trace.problem is not None
        copies = list(trace.events())
        assert copies == events[: len(copies)]
        assert len(copies) >= read_before
        read_before = len(copies)
        lengths.add(read_before)
    assert read_before == len(read(data)) == len(events)
    assert {3, 3 + ROUNDS, 3 + 44} < lengths, "a block can be read as soon as its bytes are there"


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: error.kind)
@pytest.mark.parametrize("course", ["rrw", "rww", "wrw", "wrrw", "wwr", "r"])
def test_a_refused_question_and_what_is_behind_it_are_kept(error: EngineError, course: str, tmp_path: Path) -> None:
    events: list[Event] = [READY]
    for turn, fate in enumerate(course, start=1):
        if fate == "r":
            events += refused(turn, error)
            continue
        step = replace(make_step(0, 0, index=0, text=f"answer {turn}"), turn=turn)
        events += [TurnStarted(turn, 40, 0, SETTINGS, f"question {turn}"), PrefillDone(turn, 5.0), step]
        events.append(TurnFinished(turn, "stop", f"answer {turn}", statistics=TurnStatistics(num_tokens=1)))
    recorded(events, tmp_path / "run.dft")
    trace = read_trace(tmp_path / "run.dft")
    assert trace.problem is None and list(trace.events()) == events
    reducer = Reducer()
    for event in events:
        reducer.apply(event)
    write_conversation(tmp_path / "after.dft", reducer.ready, reducer.turns)
    assert list(read_trace(tmp_path / "after.dft").events()) == events


def test_what_was_flushed_survives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_tui.core.traces.writer.FLUSH_SECONDS", 0.0)
    events = long_run()
    writer = TraceWriter(tmp_path / "run.dft")
    for count, event in enumerate(events[:50], start=1):
        writer.record(event)
        deadline = time.monotonic() + 20
        while _readable(writer.path) < count:
            assert time.monotonic() < deadline
            time.sleep(0.001)
    writer.close()


def _readable(path: Path) -> int:
    """Events of a file that is being written."""
    try:
        return len(read_trace(path))
    except TraceError:
        return 0


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "kept.dft"
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        TraceWriter(path)
    with pytest.raises(FileExistsError):
        write_conversation(path, READY, [])
    assert path.read_text() == "precious"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_ends_the_trace_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.open", lambda *_, **__: io.FileIO("/dev/full", "w"))
    writer = TraceWriter(tmp_path / "full.dft")
    monkeypatch.undo()
    for event in long_run():
        writer.record(event)
    writer.close()
    assert writer.failure is not None and "No space left" in writer.failure


def test_a_conversation_is_written_afterwards_as_it_would_have_been_live(tmp_path: Path) -> None:
    events, reducer = long_run(), Reducer()
    for event in events:
        reducer.apply(event)
    write_conversation(tmp_path / "after.dft", reducer.ready, reducer.turns)
    trace = read_trace(tmp_path / "after.dft")
    assert list(trace.events()) == events
    assert trace.header.source == "history"


def test_a_turn_that_never_started_has_no_events_but_its_end() -> None:
    end = TurnFinished(4, "error", "")
    assert list(turn_events(TurnState(4, finished=end))) == [end]


def test_a_trace_of_the_future_is_refused_in_words(tmp_path: Path) -> None:
    data = recorded(long_run(), tmp_path / "run.dft")
    known = MAGIC + b"%d\n" % FORMAT_VERSION
    with pytest.raises(TraceError, match="newer dflash-chat") as caught:
        read(data.replace(known, MAGIC + b"%d\n" % (FORMAT_VERSION + 1)))
    assert "Update" in caught.value.hint
    with pytest.raises(TraceError, match="older dflash-chat"):
        read(data.replace(known, MAGIC + b"%d\n" % (FORMAT_VERSION - 1)))


def test_whoever_records_waits_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that doesn't answer holds up the trace alone."""
    answers = threading.Event()
    write = TraceWriter._write
    monkeypatch.setattr("dflash_tui.core.traces.writer.FLUSH_SECONDS", 0.0)
    writer = TraceWriter(tmp_path / "slow.dft")
    monkeypatch.setattr(writer._frames, "_write", lambda *data: answers.wait(20) and write(writer, *data))
    events = long_run()
    for event in events:
        writer.record(event)
    assert not answers.is_set()
    answers.set()
    writer.close()
    assert list(read_trace(writer.path).events()) == events


def test_a_killed_program_leaves_its_rounds(tmp_path: Path) -> None:
    path, steps = tmp_path / "run.dft", [make_step(2, 5, index=index, time=index / 10) for index in range(40)]
    writer = TraceWriter(path)
    for event in (TurnStarted(1, 3, 0, {}), *steps):
        writer.record(event)
    _until(lambda: _steps_in(path) == steps)
    writer.close()


def _steps_in(path: Path) -> list[Step]:
    """As far as it came."""
    with suppress(TraceError):
        return list(read_trace(path).steps)
    return []


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
