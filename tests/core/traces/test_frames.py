"""Frames while a turn goes on: its newest rounds stand there for the moment, and in full blocks when it has ended."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.core.records.blocks import ROUNDS, decoded
from dflash_tui.core.records.round_log import Recorder
from dflash_tui.core.traces.format import FORMAT_VERSION, MAGIC, Frame
from dflash_tui.core.traces.frames import FrameWriter
from dflash_tui.core.traces.reader import TraceError
from engine.events import Event, Step, TurnStarted, event_to_dict
from tests.core.traces.steps import long_run, read
from tests.pace import examples, sampled

ENDED = long_run()
STARTED = replace(next(event for event in ENDED if isinstance(event, TurnStarted)), turn=2)
GOING_ON = [STARTED, *(replace(event, turn=2) for event in ENDED if isinstance(event, Step))]


class File:
    """A trace in memory."""

    def __init__(self) -> None:
        self.data = bytearray(MAGIC + b"%d\n" % FORMAT_VERSION)
        self.frames, self._recorder = FrameWriter(self._write), Recorder()
        self.frames.line({"program": "test"})

    def record(self, event: Event) -> None:
        if not isinstance(event, Step) and (rounds := self._recorder.rounds) is not None:
            self.frames.rounds(rounds, rest=True)
        self._recorder.take(event)
        if not isinstance(event, Step):
            self.frames.line(event_to_dict(event))

    def flush(self) -> None:
        if (rounds := self._recorder.rounds) is not None:
            self.frames.rounds(rounds)
        self.frames.flush()

    def blocks(self) -> list[bytes]:
        return [content for kind, content in _frames(bytes(self.data)) if kind == Frame.ROUNDS]

    def _write(self, data: bytes, instead: int) -> None:
        self.data[len(self.data) - instead :] = data


def _frames(data: bytes) -> Iterator[tuple[Frame, bytes]]:
    file = io.BytesIO(data)
    file.readline()
    while kind := file.read(1):
        size = shift = 0
        while (byte := file.read(1)[0]) > 127:
            size, shift = size | (byte & 127) << shift, shift + 7
        yield Frame(kind[0]), file.read(size | byte << shift)


def file_of(events: list[Event], flushed: set[int]) -> File:
    """The file after some events, handed out after those of these numbers."""
    file = File()
    for number, event in enumerate(events):
        file.record(event)
        if number in flushed:
            file.flush()
    file.flush()
    return file


numbers = st.sets(st.integers(0, len(ENDED) + len(GOING_ON)))


@given(numbers)
@settings(max_examples=examples(40))
def test_what_was_handed_out_can_be_read(flushed: set[int]) -> None:
    events = [*ENDED, *GOING_ON]
    assert list(read(bytes(file_of(events, flushed).data)).events()) == events


@given(numbers)
@settings(max_examples=examples(40))
def test_a_turn_takes_as_much_as_one_that_was_handed_out_at_once(flushed: set[int]) -> None:
    file, at_once = file_of(ENDED, flushed), file_of(ENDED, set())
    assert file.blocks() == at_once.blocks()
    assert [len(decoded(block)) for block in file.blocks()] == [ROUNDS, len(GOING_ON) - 1 - ROUNDS]


def test_what_a_killed_program_leaves_can_be_cut_at_any_byte() -> None:
    events = [*ENDED[:6], *GOING_ON[:10]]
    data = bytes(file_of(events, set(range(0, len(events), 4))).data)
    read_before = 0
    for length in sampled(range(len(data)), 4):
        try:
            trace = read(data[:length])
        except TraceError:
            assert read_before == 0  # nothing of it had come yet
            continue
        copies = list(trace.events())
        assert trace.problem is not None and "cut short" in trace.problem
        assert copies == events[: len(copies)] and len(copies) >= read_before
        read_before = len(copies)
    assert read_before == 7, "the last block stands for the moment, and is not whole"
