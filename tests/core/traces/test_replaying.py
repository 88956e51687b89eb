from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dflash_tui.core.reducer import Reducer
from dflash_tui.core.traces import format, replaying
from dflash_tui.core.traces.bundled import TRACES, bundled_traces, find_trace
from dflash_tui.core.traces.reader import TraceError, read_trace
from dflash_tui.core.traces.replaying import FASTEST, ReplaySource
from dflash_tui.core.traces.writer import TraceWriter
from engine.commands import Close, Stop
from engine.events import EngineError, EngineReady, Event, PrefillDone, Step, TurnFinished, TurnStarted
from tests.core.events_for_tests import make_step

READY = EngineReady("target", "drafter", "cpu", "float32", 16, 4096, 1.0)


def run_of(steps: int, seconds: float = 0.05) -> list[Event]:
    rounds = [make_step(3, 15, index=index, time=round(seconds * index, 6)) for index in range(1, steps + 1)]
    text = "".join(token.text for step in rounds for token in step.emitted)
    return [READY, TurnStarted(1, 4, 0, {}, "go"), PrefillDone(1, 1.0), *rounds, TurnFinished(1, "stop", text)]


def write(path: Path, events: list[Event]) -> Path:
    writer = TraceWriter(path)
    for event in events:
        writer.record(event)
    writer.close()
    return path


@contextmanager
def replay(path: Path, pace: float = FASTEST) -> Iterator[tuple[ReplaySource, list[Event]]]:
    events: list[Event] = []
    source = ReplaySource(path, events.append, pace)
    source.start()
    try:
        yield source, events
    finally:
        source.send(Close())
        source.join(10)


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def num_steps(events: list[Event]) -> int:
    return sum(isinstance(event, Step) for event in events)


def test_everything_comes_in_order(tmp_path: Path) -> None:
    run = run_of(700)
    with replay(write(tmp_path / "run.dft", run)) as (source, events):
        until(lambda: source.ended)
    assert events == run and source.played == 700


def test_the_recorded_pace_is_kept(tmp_path: Path) -> None:
    started = time.monotonic()
    with replay(write(tmp_path / "run.dft", run_of(10, 0.05)), pace=2.0) as (source, _):
        until(lambda: source.ended)
    assert time.monotonic() - started >= 0.5 / 2 + replaying.PAUSE


def test_it_pauses_steps_and_goes_on(tmp_path: Path) -> None:
    with replay(write(tmp_path / "run.dft", run_of(50, 0.02)), pace=1.0) as (source, events):
        until(lambda: source.played >= 1)
        source.send(Stop())
        assert not source.playing
        stood = source.played
        source.seek(stood + 3)
        until(lambda: num_steps(events) == stood + 3)
        time.sleep(0.1)
        assert num_steps(events) == stood + 3
        source.set_playing(True)
        source.set_pace(FASTEST)
        until(lambda: source.ended)
    assert events == run_of(50, 0.02)


def test_paces_out_of_range_are_refused(tmp_path: Path) -> None:
    source = ReplaySource(tmp_path / "none", lambda _: None)
    for pace in (0.0, -1.0, 1e9, float("nan")):
        with pytest.raises(ValueError, match="pace"):
            source.set_pace(pace)


def test_closing_ends_it_at_once(tmp_path: Path) -> None:
    with replay(write(tmp_path / "run.dft", run_of(50, 60.0)), pace=0.05) as (source, _):
        until(lambda: source.trace is not None)
        source.send(Close())
        source.join(10)
        assert not source._thread.is_alive()


def test_a_cut_trace_ends_its_turn_and_says_so(tmp_path: Path) -> None:
    whole = write(tmp_path / "run.dft", run_of(40))
    whole.write_bytes(whole.read_bytes()[:-60])
    with replay(whole) as (source, events):
        until(lambda: source.ended)
    *_, error, finished = events
    assert isinstance(error, EngineError) and "cut short" in error.message and error.turn == 1
    assert isinstance(finished, TurnFinished) and finished.reason == "stopped"
    reducer = Reducer()
    for event in events:
        reducer.apply(event)
    assert not reducer.busy and reducer.turn is not None and reducer.turn.text == finished.text != ""
    assert finished.statistics.num_tokens == reducer.turn.num_tokens


def test_a_file_that_is_no_trace_ends_the_engine_in_words(tmp_path: Path) -> None:
    for path in (tmp_path / "none.dft", write_text(tmp_path / "text.dft")):
        with replay(path) as (source, events):
            until(lambda events=events: bool(events))
            source.join(10)
        (error,) = events
        assert isinstance(error, EngineError) and error.fatal and error.hint


def write_text(path: Path) -> Path:
    path.write_text("hello")
    return path


# The bundled traces


@pytest.mark.parametrize("name", ["code", "code-sampled", "html", "maths", "chat-sampled"])
def test_bundled_traces_are_whole_small_and_of_the_bundled_pair(name: str) -> None:
    path = bundled_traces()[name]
    trace = read_trace(path)
    assert trace.problem is None and path.stat().st_size < 100_000
    assert trace.ready is not None and trace.ready.target_hash and trace.ready.drafter_hash
    sampled = {step.temperature > 0 for step in trace.steps}
    assert sampled == {name.endswith("sampled")}
    assert all(mark.event.reason == "stop" for mark in trace.marks if isinstance(mark.event, TurnFinished))


def test_typical_answers_take_at_most_twelve_bytes_a_token() -> None:
    for name in ("code", "html"):
        path = bundled_traces()[name]
        assert path.stat().st_size / read_trace(path).steps.num_tokens <= 12


def test_traces_are_found_by_name_and_by_path(tmp_path: Path) -> None:
    assert find_trace("demo") == find_trace("code") == TRACES / "code.dft"
    own = write(tmp_path / "mine.dft", run_of(2))
    assert find_trace(str(own)) == own
    with pytest.raises(TraceError, match="no file nope"):
        find_trace("nope")
    with pytest.raises(TraceError, match="not a trace"):
        find_trace(str(write_text(tmp_path / "text.dft")))


def test_the_format_is_documented_as_it_is() -> None:
    text = (Path(format.__file__).parent / "FORMAT.md").read_text()
    dictionary = format.DICTIONARY
    assert f"{len(dictionary)} of them, with the Adler-32 checksum {zlib.adler32(dictionary):08x}" in text
    assert f"Traces, format {format.FORMAT_VERSION}" in text
