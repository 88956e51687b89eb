from __future__ import annotations

import io
import json
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui.core.reducer import Reducer, TurnState
from dflash_tui.core.stretch import Stretch
from dflash_tui.core.traces.format import DICTIONARY, MAGIC, Frame
from dflash_tui.core.traces.packing import Packer, put_number
from dflash_tui.core.traces.reader import Trace, TraceError, read_stream, read_trace
from dflash_tui.core.traces.writer import TraceWriter, turn_events, write_conversation
from engine.events import (
    EngineError,
    EngineReady,
    Event,
    LoadProgress,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
)
from tests.core.events_for_tests import make_step
from tests.core.traces.steps import turns

READY = EngineReady("target", "drafter", "cpu", "float32", 16, 4096, 1.25, "Hello", "sdpa", "sdpa", "0a1b", "2c3d")
SETTINGS = {"block_size": 16, "temperature": 0.5, "seed": 3}


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    """The events of a program's run: up to three turns, ending in any way."""
    events: list[Event] = [LoadProgress("read", 1, 2), READY]
    for number in range(1, draw(st.integers(1, 3)) + 1):
        question = draw(st.text(max_size=20))
        steps = [replace(step, turn=number) for step in draw(turns)]
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


def read(data: bytes) -> Trace:
    return read_stream(io.BytesIO(data), "test.dft")


def state(reducer: Reducer) -> tuple[object, ...]:
    """Everything that the screen is drawn from."""
    turns = [
        (t.text, t.snapshot, list(t.history), t.latest, t.latest_drafted, t.reason, t.error, t.started, t.finished)
        for t in reducer.turns
    ]
    return (reducer.phase, reducer.ready, reducer.failure, turns, reducer.take_spans())


def test_a_replay_shows_what_the_run_showed_at_every_step(tmp_path: Path) -> None:
    @given(runs())
    @settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
    def check(events: list[Event]) -> None:
        replayed = read(recorded(events, tmp_path / "run.dft"))
        assert replayed.problem is None and replayed.header.source == "engine"
        live, again = Reducer(), Reducer()
        live.apply(events[0])
        for event, copy in zip(events[1:], replayed.events(), strict=True):
            live.apply(event)
            again.apply(copy)
            assert copy == event
        again.loading = live.loading
        assert state(again) == state(live)

    check()


def test_a_jump_leads_to_what_playing_leads_to(tmp_path: Path) -> None:
    """From any event to any later one: the same state, and playing on from there stays the same."""

    @given(runs(), st.data())
    @settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
    def check(events: list[Event], data: st.DataObject) -> None:
        trace = read(recorded(events, tmp_path / "run.dft"))
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

    check()


def test_a_stretch_holds_the_steps_it_stands_for(tmp_path: Path) -> None:
    @given(runs(), st.data())
    @settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
    def check(events: list[Event], data: st.DataObject) -> None:
        trace = read(recorded(events, tmp_path / "run.dft"))
        start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(trace))] * 2)))
        told = list(trace.happenings(start, stop))
        stretches = [happening for happening in told if isinstance(happening, Stretch)]
        flat = [event for each in told for event in (each.steps() if isinstance(each, Stretch) else (each,))]
        assert flat == list(trace.events())[start:stop]
        assert all(step.turn == stretch.turn for stretch in stretches for step in stretch.steps())
        assert not any(isinstance(event, Step) for event in told)

    check()


def test_a_trace_whose_turns_are_muddled_jumps_as_it_plays() -> None:
    """An end that belongs to another turn, and steps behind it: nobody honest wrote that."""
    other = event_frame(event="TurnFinished", turn=2, reason="stop", text="")
    same = event_frame(event="TurnFinished", turn=1, reason="stop", text="")
    packer = Packer()
    steps = [frame(Frame.STEP, packer.pack(make_step(index % 4, 4, index=index))) for index in range(6)]
    body = b"".join([STARTED, *steps[:2], other, *steps[2:3], same, *steps[3:], STARTED])
    trace = read(file_of(body))
    played, jumped = Reducer(), Reducer()
    for event in trace.events():
        played.apply(event)
    for happening in trace.happenings(0, len(trace)):
        jumped.apply(happening)
    assert len(trace.steps) == 6 and [len(turn.history) for turn in played.turns] == [2, 0, 3, 0]
    assert state(jumped) == state(played)


def test_steps_of_a_turn_are_found_in_the_trace(tmp_path: Path) -> None:
    @given(runs())
    @settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
    def check(events: list[Event]) -> None:
        trace = read(recorded(events, tmp_path / "run.dft"))
        reducer = Reducer()
        for event in trace.events():
            reducer.apply(event)
        steps = list(trace.steps)
        for turn in reducer.turns:
            places = trace.steps_of_turn(turn.number)
            assert steps[places.start : places.stop] == list(turn.history)
        assert not trace.steps_of_turn(99)

    check()


def test_reading_can_begin_anywhere(tmp_path: Path) -> None:
    @given(runs(), st.data())
    @settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
    def check(events: list[Event], data: st.DataObject) -> None:
        trace = read(recorded(events, tmp_path / "run.dft"))
        start = data.draw(st.integers(0, len(trace)))
        assert list(trace.events(start)) == list(trace.events())[start:]
        numbers = [number for number, event in enumerate(trace.events()) if isinstance(event, Step)]
        assert [trace.number_of_step(step) for step in range(len(trace.steps))] == numbers

    check()


def long_run() -> list[Event]:
    steps = [make_step(index % 16, 15, index=index, time=index / 100, text=f" w{index % 7}") for index in range(1, 45)]
    text = "".join(token.text for step in steps for token in step.emitted)
    return [READY, TurnStarted(1, 40, 0, SETTINGS, "go"), PrefillDone(1, 5.0), *steps, TurnFinished(1, "stop", text)]


def test_a_trace_cut_at_any_byte_replays_up_to_the_cut_and_says_so(tmp_path: Path) -> None:
    events = long_run()
    data = recorded(events, tmp_path / "run.dft")
    read_before = 0
    for length in range(len(data)):
        try:
            trace = read(data[:length])
        except TraceError:
            assert read_before == 0  # nothing of it had come yet
            continue
        assert trace.problem is not None or length >= len(data) - 16  # the checksum behind the last frame
        copies = list(trace.events())
        assert copies == events[: len(copies)]
        assert len(copies) >= read_before
        read_before = len(copies)
    assert read_before == len(events)


def test_what_was_flushed_survives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_tui.core.traces.writer.FLUSH_SECONDS", 0.0)
    events = long_run()
    writer = TraceWriter(tmp_path / "run.dft")
    for count, event in enumerate(events[:50], start=1):
        writer.record(event)
        assert len(read_trace(writer.path)) == count
    writer.close()


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
    with pytest.raises(TraceError, match="newer dflash-chat") as caught:
        read(data.replace(MAGIC + b"1\n", MAGIC + b"2\n"))
    assert "Update" in caught.value.hint


# Files that nobody honest wrote


def frame(kind: int, content: bytes) -> bytes:
    head = bytearray((kind,))
    put_number(head, len(content))
    return bytes(head) + content


def file_of(frames: bytes, level: int = 6) -> bytes:
    deflate = zlib.compressobj(level, zdict=DICTIONARY)
    return MAGIC + b"1\n" + deflate.compress(frames) + deflate.flush()


def bomb(frames: int) -> bytes:
    """Gigabytes of nothing in megabytes: 4 MiB of zeros per frame."""
    deflate, nothing = zlib.compressobj(9, zdict=DICTIONARY), frame(77, bytes(4 * 2**20))
    parts = [deflate.compress(STARTED), *(deflate.compress(nothing) for _ in range(frames)), deflate.flush()]
    return MAGIC + b"1\n" + b"".join(parts)


def event_frame(**data: object) -> bytes:
    return frame(Frame.EVENT, json.dumps(data).encode())


STARTED = event_frame(event="TurnStarted", turn=1, num_prompt_tokens=1, num_reused_tokens=0, settings={})


@given(st.binary(max_size=300))
@settings(max_examples=400)
def test_random_bytes_are_refused_or_read(noise: bytes) -> None:
    for data in (noise, MAGIC + b"1\n" + noise, file_of(noise), file_of(STARTED + frame(Frame.STEP, noise))):
        try:
            list(read(data).events())
        except TraceError as error:
            assert error.hint


@given(st.data())
@settings(max_examples=60)
def test_a_flipped_byte_never_raises_anything_else(data: st.DataObject) -> None:
    whole = bytearray(FLIPPABLE)
    place = data.draw(st.integers(len(MAGIC), len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    try:
        trace = read(bytes(whole))
    except TraceError:
        return
    list(trace.events())


def _flippable() -> bytes:
    body = bytearray(STARTED)
    packer = Packer()
    for event in long_run():
        if isinstance(event, Step):
            body += frame(Frame.STEP, packer.pack(event))
    return file_of(bytes(body), level=0)


FLIPPABLE = _flippable()


@pytest.mark.parametrize(
    "event",
    [
        {"event": "TurnStarted", "turn": "one", "num_prompt_tokens": 1, "num_reused_tokens": 0, "settings": {}},
        {"event": "TurnStarted", "turn": -1, "num_prompt_tokens": 1, "num_reused_tokens": 0, "settings": {}},
        {"event": "TurnStarted", "turn": 1, "num_prompt_tokens": 1, "num_reused_tokens": 0, "settings": []},
        {"event": "TurnFinished", "turn": 1, "reason": "because", "text": "", "statistics": {}},
        {"event": "TurnFinished", "turn": 1, "reason": "stop", "text": 5, "statistics": {}},
        {"event": "PrefillDone", "turn": 1, "milliseconds": float("nan")},
        {"event": "PrefillDone", "turn": 1, "milliseconds": 1e300},
        {"event": "Step"},
        {"event": "Surprise"},
        {"event": ["TurnStarted"]},
        {},
    ],
)
def test_events_that_are_none_end_the_trace(event: dict[str, object]) -> None:
    trace = read(file_of(STARTED + event_frame(**event) + STARTED))
    assert len(trace) == 1 and trace.problem is not None and "damaged" in trace.problem


def test_unknown_frames_and_fields_are_left_out() -> None:
    newer = event_frame(event="PrefillDone", turn=1, milliseconds=2.0, colour="blue")
    trace = read(file_of(STARTED + frame(77, b"?") + newer + frame(Frame.END, b"")))
    assert trace.problem is None and list(trace.events())[1] == PrefillDone(1, 2.0)


def test_names_cannot_move_the_cursor_and_settings_are_those_of_this_program() -> None:
    ready = {"event": "EngineReady", "target": "\x1b[2Jevil\n" + "x" * 9999, "drafter": None, "device": "c\ud800"}
    sizes = {"dtype": "f", "max_block_size": 1, "max_context": 1, "load_seconds": 0}
    wild = {"block_size": 10**9, "temperature": 0.5, "nested": [[[]]], "seed": "x"}
    start = {"event": "TurnStarted", "turn": 1, "num_prompt_tokens": 1, "num_reused_tokens": 0, "settings": wild}
    first, second = read(file_of(event_frame(**ready, **sizes) + event_frame(**start))).events()
    assert isinstance(first, EngineReady) and isinstance(second, TurnStarted)
    assert first.target.isprintable() and len(first.target) <= 200 and first.device == "c\ufffd"
    assert second.settings == {"temperature": 0.5}


HOSTILE = {
    "zip bomb": "bomb(100)",
    "huge count": "file_of(STARTED + bytes([3, 255, 255, 255, 127]) + bytes(10**6))",
    "deep nesting": "file_of(STARTED + frame(2, b'[' * 4 * 2**20))",
    "wide nesting": "file_of(STARTED + frame(2, b'[' + b'[],' * 1_300_000 + b'[]]'))",
    "a year in a step": "file_of(STARTED + frame(3, bytes([4, 1, 0, 0, 0, 0, 0, *[128] * 5, 8, 0, 0, 0, 0])))",
    "countless accepted": "file_of(STARTED + frame(3, bytes([20, 1, 0, 0, *[128] * 5, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0])))",
    "many events": "file_of(STARTED * 12_000)",
    "many steps": "file_of(STARTED + STEP + frame(3, bytes([0, 0, 0, 0, 0, 0, 0, 0, 0])) * 140_000)",
}
SCRIPT = """
import re, sys, time
from tests.core.traces.test_traces import *
STEP = frame(3, bytes([4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
data = {expression}
started = time.monotonic()
trace = read(data)
print(trace.problem)
print(time.monotonic() - started, file=sys.stderr)
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to say what the peak was")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_take_little_memory_and_time(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(expression=HOSTILE[name])],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    problem, kilobytes = done.stdout.splitlines()
    assert problem != "None"
    assert int(kilobytes) < 300 * 1024
