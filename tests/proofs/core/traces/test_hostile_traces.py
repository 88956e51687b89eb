"""Traces that nobody honest wrote: refused, or read as far as they make sense, in little time and memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.core.conversation.reducer import Reducer
from dflash_tui.core.records.blocks import encoded
from dflash_tui.core.traces import reader
from dflash_tui.core.traces.format import FORMAT_VERSION, MAGIC, SYNC, Frame
from dflash_tui.core.traces.reader import TraceError
from engine.events import EngineReady, PrefillDone, Step, TurnStarted
from support.events_for_tests import make_step
from tests.core.traces.steps import long_run, read
from tests.pace import examples
from tests.proofs.core.traces.test_traces import state


def put_number(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def frame(kind: int, content: bytes) -> bytes:
    head = bytearray((kind,))
    put_number(head, len(content))
    return bytes(head) + content


def lines(text: bytes) -> bytes:
    """A frame of lines, which refers to none before it."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return frame(Frame.LINES, (deflate.compress(text) + deflate.flush(zlib.Z_SYNC_FLUSH)).removesuffix(SYNC))


def event_line(**data: object) -> bytes:
    return lines(json.dumps(data).encode() + b"\n")


def rounds(*steps: Step, first: int = 0) -> bytes:
    return frame(Frame.ROUNDS, encoded(1, first, steps))


def file_of(*frames: bytes) -> bytes:
    return FIRST_LINE + HEAD + b"".join(frames)


FIRST_LINE = MAGIC + b"%d\n" % FORMAT_VERSION
HEAD = event_line(program="test")
STARTED = event_line(event="TurnStarted", turn=1, num_prompt_tokens=1, num_reused_tokens=0, settings={})


def test_a_trace_whose_turns_are_muddled_jumps_as_it_plays() -> None:
    """An end that belongs to another turn, and steps behind it: nobody honest wrote that."""
    other = event_line(event="TurnFinished", turn=2, reason="stop", text="")
    same = event_line(event="TurnFinished", turn=1, reason="stop", text="")
    steps = [make_step(index % 4, 4, index=index) for index in range(6)]
    one, two, three = rounds(*steps[:2]), rounds(steps[2], first=2), rounds(*steps[3:], first=3)
    trace = read(file_of(STARTED, one, other, two, same, three, STARTED))
    played, jumped = Reducer(), Reducer()
    for event in trace.events():
        played.apply(event)
    for happening in trace.happenings(0, len(trace)):
        jumped.apply(happening)
    assert len(trace.steps) == 6 and [len(turn.history) for turn in played.turns] == [2, 0, 3, 0]
    assert state(jumped) == state(played)


@given(st.binary(max_size=300))
@settings(max_examples=examples(400))
def test_random_bytes_are_refused_or_read(noise: bytes) -> None:
    frames = (lines(noise), frame(Frame.ROUNDS, noise), frame(Frame.ROUNDS, zlib.compress(noise)))
    for data in (noise, FIRST_LINE + noise, file_of(noise), *(file_of(STARTED, each) for each in frames)):
        try:
            list(read(data).events())
        except TraceError as error:
            assert error.hint


@given(data=st.data())
@settings(max_examples=examples(60))
def test_a_flipped_byte_never_raises_anything_else(data: st.DataObject) -> None:
    steps = [each for each in long_run() if isinstance(each, Step)][:32]
    whole = bytearray(file_of(STARTED, rounds(*steps)))
    place = data.draw(st.integers(len(MAGIC), len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    try:
        trace = read(bytes(whole))
    except TraceError:
        return
    list(trace.events())


@pytest.mark.parametrize(
    "wrong",
    [
        rounds(make_step(1, 2), first=2),
        rounds(replace(make_step(1, 2), num_accepted=3)),
        frame(Frame.ROUNDS, encoded(2, 0, [make_step(1, 2)])),
        rounds(make_step(0, 257)),
    ],
    ids=["missing rounds", "accepts more than was drafted", "of another turn", "drafts too much"],
)
def test_rounds_that_are_none_end_the_trace(wrong: bytes) -> None:
    trace = read(file_of(STARTED, wrong))
    assert len(trace.steps) == 0 and trace.problem is not None and "damaged" in trace.problem


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
    trace = read(file_of(STARTED, event_line(**event), STARTED))
    assert len(trace) == 1 and trace.problem is not None and "damaged" in trace.problem


def test_unknown_frames_and_fields_are_left_out() -> None:
    newer = event_line(event="PrefillDone", turn=1, milliseconds=2.0, colour="blue")
    trace = read(file_of(STARTED, frame(77, b"?"), newer, frame(Frame.END, b"")))
    assert trace.problem is None and list(trace.events())[1] == PrefillDone(1, 2.0)


def test_names_cannot_move_the_cursor_and_settings_are_those_of_this_program() -> None:
    ready = {"event": "EngineReady", "target": "\x1b[2Jevil\n" + "x" * 9999, "drafter": None, "device": "c\ud800"}
    sizes = {"dtype": "f", "max_block_size": 1, "max_context": 1, "load_seconds": 0}
    wild = {"block_size": 10**9, "temperature": 0.5, "nested": [[[]]], "seed": "x"}
    start = {"event": "TurnStarted", "turn": 1, "num_prompt_tokens": 1, "num_reused_tokens": 0, "settings": wild}
    first, second = read(file_of(event_line(**ready, **sizes), event_line(**start))).events()
    assert isinstance(first, EngineReady) and isinstance(second, TurnStarted)
    assert first.target.isprintable() and len(first.target) <= 200 and first.device == "c\ufffd"
    assert second.settings == {"temperature": 0.5}


def bomb(megabytes: int) -> bytes:
    """A frame of nothing, deflated; each of its megabytes stands for itself."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    megabyte = deflate.compress(bytes(2**20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    return frame(Frame.LINES, megabyte * megabytes + deflate.flush())


def deflated(megabytes: int) -> bytes:
    """A block of nothing."""
    deflate = zlib.compressobj(9)
    first, other = (deflate.compress(b"[" * 2**20) + deflate.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + other * megabytes


LONG_LINE = json.dumps({"event": "PrefillDone", "turn": 1, "milliseconds": 1, "more": "x" * 10**6}).encode() + b"\n"
HOSTILE: dict[str, Callable[[], bytes]] = {
    "zip bomb": lambda: file_of(STARTED, bomb(3000)),
    "bomb of bombs": lambda: file_of(STARTED, *[lines(LONG_LINE)] * 40),
    "huge count": lambda: file_of(STARTED, rounds(make_step(1, 2)), frame(2, bytes([255, 255, 255, 127]))),
    "huge frame": lambda: file_of(STARTED, bytes([2, 255, 255, 255, 127]) + bytes(10**6)),
    "deep nesting": lambda: file_of(STARTED, lines(b"[" * (4 * 2**20 - 1) + b"\n")),
    "wide nesting": lambda: file_of(STARTED, lines(b"[" + b"[]," * 1_300_000 + b"[]]\n")),
    "a year in a step": lambda: file_of(STARTED, rounds(replace(make_step(1, 2), time=3e7))),
    "countless accepted": lambda: file_of(STARTED, rounds(replace(make_step(1, 2), num_accepted=2**40))),
    "bomb of rounds": lambda: file_of(STARTED, frame(Frame.ROUNDS, deflated(3000))),
    "wide nesting in rounds": lambda: file_of(
        STARTED, frame(Frame.ROUNDS, zlib.compress(b"[" + b"[]," * 1_300_000 + b"[]]"))
    ),
}
SHARE = 16
"""Of what a trace may hold, this part is enough for the files below, which take a minute to read up to the limits."""
COUNTLESS: dict[str, Callable[[], bytes]] = {
    "many events": lambda: file_of(*[STARTED] * (12_000 // SHARE)),
}


def report_each() -> None:
    """For the process below: of each file what is wrong with it and the most memory, in a child of its own."""
    for name, file in {**HOSTILE, **COUNTLESS}.items():
        if os.fork() == 0:
            for limit in ("MAX_STEPS", "MAX_TOKENS", "MAX_DRAFTED", "MAX_EVENTS") if name in COUNTLESS else ():
                setattr(reader, limit, getattr(reader, limit) // SHARE)
            trace = read(file())
            print(json.dumps([name, trace.problem, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]), flush=True)
            os._exit(0)
        assert os.wait()[1] == 0, name


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to say what the peak was")
@pytest.mark.ci
def test_hostile_files_take_little_memory_and_time() -> None:
    script = "from tests.proofs.core.traces.test_hostile_traces import *; report_each()"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[4], capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [name for name, *_ in said] == [*HOSTILE, *COUNTLESS]
    for name, problem, kilobytes in said:
        assert problem is not None, name
        assert kilobytes < (64 if name in COUNTLESS else 300) * 1024, name
    assert all("longer than this program reads" in problem for name, problem, _ in said if name in COUNTLESS)
