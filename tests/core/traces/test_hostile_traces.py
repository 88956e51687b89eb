"""Traces that nobody honest wrote: refused, or read as far as they make sense, in little time and memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.core.conversation.reducer import Reducer
from dflash_tui.core.rounds.numbers import put_number
from dflash_tui.core.rounds.packing import Packer
from dflash_tui.core.traces.coding import Encoder
from dflash_tui.core.traces.format import FORMAT_VERSION, MAGIC, SYNC, Frame
from dflash_tui.core.traces.reader import TraceError
from dflash_tui.core.traces.step_coding import Coding, StepModel
from engine.events import EngineReady, PrefillDone, Step, TurnStarted
from tests.core.events_for_tests import make_step
from tests.core.traces.test_traces import long_run, read, state
from tests.pace import examples


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


class Steps:
    """Frames of packed steps."""

    def __init__(self) -> None:
        self._model = StepModel()

    def frame(self, *packed: bytes) -> bytes:
        content, encoder = bytearray(), Encoder()
        put_number(content, len(packed))
        for step in packed:
            self._model.walk(Coding(self._model, encoder, step))
        return frame(Frame.STEPS, bytes(content) + encoder.finished())


def steps(*packed: bytes) -> bytes:
    return Steps().frame(*packed)


def packed(*steps: bytes) -> bytes:
    """A frame of steps as a turn that goes on has them."""
    content = bytearray()
    for step in steps:
        put_number(content, len(step))
        content += step
    return frame(Frame.PACKED, bytes(content))


def file_of(*frames: bytes) -> bytes:
    return FIRST_LINE + HEAD + b"".join(frames)


FIRST_LINE = MAGIC + b"%d\n" % FORMAT_VERSION
HEAD = event_line(program="test")
STARTED = event_line(event="TurnStarted", turn=1, num_prompt_tokens=1, num_reused_tokens=0, settings={})
FIRST = bytes([4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
"""The first step of turn 1, in which nothing happens."""
NOTHING = bytes(9)
"""Another one."""


def test_a_trace_whose_turns_are_muddled_jumps_as_it_plays() -> None:
    """An end that belongs to another turn, and steps behind it: nobody honest wrote that."""
    other = event_line(event="TurnFinished", turn=2, reason="stop", text="")
    same = event_line(event="TurnFinished", turn=1, reason="stop", text="")
    packer = Packer()
    packed = [packer.pack(make_step(index % 4, 4, index=index)) for index in range(6)]
    frames = Steps()
    one, two, three = (frames.frame(*part) for part in (packed[:2], packed[2:3], packed[3:]))
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
    frames = (lines(noise), frame(Frame.STEPS, b"\x05" + noise), frame(Frame.PACKED, noise), packed(FIRST, noise))
    for data in (noise, FIRST_LINE + noise, file_of(noise), *(file_of(STARTED, each) for each in frames)):
        try:
            list(read(data).events())
        except TraceError as error:
            assert error.hint


@pytest.mark.parametrize("kind", [Frame.STEPS, Frame.PACKED])
@given(data=st.data())
@settings(max_examples=examples(60))
def test_a_flipped_byte_never_raises_anything_else(kind: Frame, data: st.DataObject) -> None:
    whole = bytearray(FLIPPABLE[kind])
    place = data.draw(st.integers(len(MAGIC), len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    try:
        trace = read(bytes(whole))
    except TraceError:
        return
    list(trace.events())


@pytest.mark.parametrize("frame_of", [steps, packed])
def test_a_step_that_judges_more_than_was_drafted_ends_the_trace(frame_of: Callable[..., bytes]) -> None:
    judging = bytes([4, 1, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 0])
    trace = read(file_of(STARTED, frame_of(judging)))
    assert len(trace.steps) == 0 and trace.problem is not None and "damaged" in trace.problem


def test_a_packed_step_that_drafts_more_than_steps_do_ends_the_trace() -> None:
    for drafted, steps_read in ((256, 2), (257, 1)):
        count = bytearray()
        put_number(count, drafted)
        drafting = bytes([0, 0, 0, 0, 0, *count, 0, 0, 0]) + bytes(drafted - 1 + drafted + 3)
        trace = read(file_of(STARTED, packed(FIRST, drafting)))
        assert len(trace.steps) == steps_read
        assert trace.problem is not None and ("damaged" in trace.problem) == (drafted > 256)


def test_packed_steps_end_with_their_frame() -> None:
    whole = packed(FIRST, NOTHING)
    short = frame(Frame.PACKED, whole[2:-1])
    trace = read(file_of(STARTED, short, STARTED))
    assert len(trace.steps) == 1 and len(trace) == 2 and trace.problem is not None and "damaged" in trace.problem


def _flippable(frame_of: Callable[..., bytes]) -> bytes:
    packer = Packer()
    return file_of(STARTED, frame_of(*(packer.pack(event) for event in long_run() if isinstance(event, Step))))


FLIPPABLE = {Frame.STEPS: _flippable(steps), Frame.PACKED: _flippable(packed)}


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


def drafting(first: bool) -> bytes:
    """A step that drafts the same token 200 times, in few bits."""
    piece = bytes([0, 0, 0] if first else [0])
    return bytes([0, 0, 0, 0, 0, 200, 1]) + piece + bytes(199 + 200 + 3)


LONG_LINE = json.dumps({"event": "PrefillDone", "turn": 1, "milliseconds": 1, "more": "x" * 10**6}).encode() + b"\n"
COUNTLESS_DRAFTED = bytes.fromhex("0216fa553341d41a00000000000011bc2e020422ff3da9b1")
"""``steps(FIRST, drafting(True), *[drafting(False)] * 11_000)``, which takes six seconds to make."""
HOSTILE: dict[str, Callable[[], bytes]] = {
    "zip bomb": lambda: file_of(STARTED, bomb(3000)),
    "bomb of bombs": lambda: file_of(STARTED, *[lines(LONG_LINE)] * 40),
    "huge count": lambda: file_of(STARTED, steps(FIRST), frame(2, bytes([255, 255, 255, 127]))),
    "huge frame": lambda: file_of(STARTED, bytes([2, 255, 255, 255, 127]) + bytes(10**6)),
    "deep nesting": lambda: file_of(STARTED, lines(b"[" * (4 * 2**20 - 1) + b"\n")),
    "wide nesting": lambda: file_of(STARTED, lines(b"[" + b"[]," * 1_300_000 + b"[]]\n")),
    "a year in a step": lambda: file_of(STARTED, steps(bytes([4, 1, 0, 0, 0, 0, 0, *[128] * 5, 8, 0, 0, 0, 0]))),
    "countless accepted": lambda: file_of(
        STARTED, steps(bytes([20, 1, 0, 0, *[128] * 5, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
    ),
    "many events": lambda: file_of(*[STARTED] * 12_000),
    "countless drafted": lambda: file_of(STARTED, COUNTLESS_DRAFTED),
    "countless packed": lambda: file_of(STARTED, packed(FIRST, drafting(True)), *[packed(drafting(False))] * 11_000),
    "many packed steps": lambda: file_of(STARTED, packed(FIRST, *[NOTHING] * 132_000)),
    "a packed step without end": lambda: file_of(STARTED, packed(FIRST, bytes(4 * 2**20 - 64))),
}


def report_each() -> None:
    """For the process below: of each file what is wrong with it and the most memory, in a child of its own."""
    for name, file in HOSTILE.items():
        if os.fork() == 0:
            trace = read(file())
            print(json.dumps([name, trace.problem, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]), flush=True)
            os._exit(0)
        assert os.wait()[1] == 0, name


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to say what the peak was")
@pytest.mark.ci
def test_hostile_files_take_little_memory_and_time() -> None:
    script = "from tests.core.traces.test_hostile_traces import *; report_each()"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [name for name, *_ in said] == [*HOSTILE]
    for name, problem, kilobytes in said:
        assert problem is not None, name
        assert kilobytes < 300 * 1024, name
    assert all("longer than this program reads" in problem for name, problem, _ in said if "countless d" in name)
