from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.conversation.reducer import Reducer
from dflash_tui.core.conversation.turn import CUT_OFF
from dflash_tui.core.replay import replay_source
from dflash_tui.core.replay.bundled import RECORDINGS, SHOWN, bundled_recordings, find_recording
from dflash_tui.core.replay.recording import RecordingError, read_recording
from dflash_tui.core.replay.replay_source import FASTEST, ReplaySource
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import Happening, Rewind, StepBatch
from dflash_tui.core.text.wrapping import Document
from engine.commands import Close, GenerationSettings, Stop
from engine.events import EngineError, EngineReady, Event, PrefillDone, Step, TurnFinished, TurnStarted
from engine.rounds.blocks import ROUNDS, Block
from support.events_for_tests import make_step
from tests.pace import examples
from tests.surroundings import threads, until

READY = EngineReady("target", "drafter", "cpu", "float32", 16, 4096, 1.0)


def run_of(steps: int, seconds: float = 0.05) -> list[Event]:
    rounds = [make_step(3, 15, index=index, time=round(seconds * index, 6)) for index in range(1, steps + 1)]
    text = "".join(token.text for step in rounds for token in step.emitted)
    return [READY, TurnStarted(1, 4, 0, {}, "go"), PrefillDone(1, 1.0), *rounds, TurnFinished(1, "stop", text)]


def write(path: Path, events: list[Event]) -> Path:
    writer = SessionLog.record_into(path)
    for event in events:
        writer.record(event)
    writer.close()
    return path


@contextmanager
def replay(path: Path, pace: float | None = FASTEST) -> Iterator[tuple[ReplaySource, list[Happening]]]:
    events: list[Happening] = []
    source = ReplaySource(path, events.append, pace)
    source.start()
    try:
        yield source, events
    finally:
        source.send(Close())
        source.join(60)


def flat(told: list[Happening]) -> list[Event]:
    """The events that were handed out, those of batches one by one."""
    return [event for each in told for event in (each.steps() if isinstance(each, StepBatch) else (each,))]


def num_steps(told: list[Happening]) -> int:
    return sum(isinstance(event, Step) for event in flat(told))


class Shown:
    """What a screen shows of what it is told."""

    def __init__(self) -> None:
        self.chat = Chat(GenerationSettings(), lambda _: None)
        self.document = Document(40)

    def take(self, told: Iterable[Happening]) -> None:
        for each in told:
            if isinstance(each, Rewind):
                self.document.clear()
            self.chat.apply(each)
            self.document.append(self.chat.reducer.take_spans())

    @property
    def state(self) -> list[object]:
        chat, document = self.chat, self.document
        turns = [
            (t.text, t.snapshot, list(t.rounds), t.latest, t.latest_drafted, t.reason, t.error, t.started, t.finished)
            for t in chat.reducer.turns
        ]
        rows = [(row, list(document.pieces(row))) for row in document.rows]
        told = (chat.reducer.phase, chat.reducer.ready, chat.reducer.failure, chat.busy)
        tree = [(t.number, t.question, t.parent, t.answer, t.reason) for t in chat.tree]
        return [turns, rows, *told, tree, chat.messages, chat.answers]


def conversation(sizes: tuple[int, ...] = (40, 3, 90)) -> list[Event]:
    """An answer per size, with thoughts, of so many steps."""
    events: list[Event] = [READY]
    for turn, size in enumerate(sizes, start=1):
        events += [TurnStarted(turn, 4, 0, {"speculation": turn != 2}, f"question {turn}"), PrefillDone(turn, 1.0)]
        said: dict[str, str] = {"thought": "", "answer": ""}
        for index in range(size):
            channel = "thought" if index < 3 else "answer"
            step = make_step(
                index % 7, 7 * (index > 0), index=index, time=round(0.05 * index, 6), text=f" w{index % 11}\n"
            )
            emitted = tuple(replace(token, channel=channel) for token in step.emitted)
            said[channel] += "".join(token.text for token in emitted)
            events.append(replace(step, turn=turn, emitted=emitted))
        events.append(TurnFinished(turn, "stop", said["answer"], said["thought"]))
    return events


def test_a_run_that_would_be_over_at_once_starts_slowed() -> None:
    with replay(find_recording("gpu"), None) as (source, _):
        until(lambda: source.record is not None and source.pace < 1)
        assert source.record is not None and source.record.seconds < 0.1
        assert 15 < source.record.seconds / source.pace < 25


def test_the_recorded_pace_is_kept(tmp_path: Path) -> None:
    started = time.monotonic()
    with replay(write(tmp_path / "run.jsonl", run_of(10, 0.05)), pace=2.0) as (source, _):
        until(lambda: source.ended)
    assert time.monotonic() - started >= 0.5 / 2 + replay_source.PAUSE


def test_it_pauses_steps_and_goes_on(tmp_path: Path) -> None:
    with replay(write(tmp_path / "run.jsonl", run_of(50, 0.02)), pace=1.0) as (source, events):
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
    assert flat(events) == run_of(50, 0.02) and source.played == 50


@given(st.data())
@settings(max_examples=examples(15), deadline=None)
def test_going_anywhere_shows_what_playing_up_to_there_shows(data: st.DataObject) -> None:
    """Jumps ahead and back, in any order, by a source that stands still; then everything to the end."""
    run = conversation()
    total = num_steps(list(run))
    wanted = data.draw(st.lists(st.integers(0, total), min_size=1, max_size=5))
    with TemporaryDirectory() as folder, replay(write(Path(folder) / "run.jsonl", run), pace=0.05) as (source, told):
        source.send(Stop())
        until(lambda: source.record is not None)
        jumping, seen = Shown(), 0
        for steps in wanted:
            source.seek(steps)
            jumping.take(told[seen:])
            seen = len(told)
            playing = Shown()
            playing.take(run[: upto(run, steps)])
            assert source.played == steps and source.ended == (steps == total)
            assert jumping.state == playing.state
        source.set_playing(True)
        source.set_pace(FASTEST)
        until(lambda: source.ended)
        jumping.take(told[seen:])
        playing = Shown()
        playing.take(run)
        assert jumping.state == playing.state


def upto(run: list[Event], steps: int) -> int:
    """How many events there are when so many steps were told; with the last step comes the end."""
    places = [place for place, event in enumerate(run, start=1) if isinstance(event, Step)]
    return len(run) if steps == len(places) else places[steps - 1] if steps else 0


def test_a_jump_asked_for_before_the_trace_was_read_is_kept(tmp_path: Path) -> None:
    events: list[Happening] = []
    source = ReplaySource(write(tmp_path / "run.jsonl", run_of(20, 60.0)), events.append)
    source.seek(12)
    source.start()
    until(lambda: source.played == 12)
    source.send(Close())
    source.join(60)
    assert flat(events) == run_of(20, 60.0)[: 3 + 12]


def test_a_jump_into_a_long_answer_decodes_next_to_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "run.jsonl", run_of(1000, 6.0))
    with replay(path) as (source, told):
        source.send(Stop())
        until(lambda: source.record is not None)
        shown = Shown()
        count, read = [0], Block.step

        def counting(self: Block, place: int) -> Step:
            count[0] += 1
            return read(self, place)

        monkeypatch.setattr(Block, "step", counting)
        for steps in (900, 10, 777):
            source.seek(steps)
            shown.take(told)
            told.clear()
            assert shown.chat.reducer.turn is not None and len(shown.chat.reducer.turn.rounds) == steps
        assert count[0] < 3 * 5 * ROUNDS


def test_closing_ends_it_at_once(tmp_path: Path) -> None:
    before = threads("replay")
    with replay(write(tmp_path / "run.jsonl", run_of(50, 60.0)), pace=0.05) as (source, _):
        until(lambda: source.record is not None)
        source.send(Close())
        source.join(60)
        assert threads("replay") <= before


def test_a_recording_cut_short_ends_its_turn_and_says_so(tmp_path: Path) -> None:
    whole = write(tmp_path / "run.jsonl", run_of(40)[:-1])
    with replay(whole) as (source, events):
        until(lambda: source.ended)
    *_, error, finished = events
    assert isinstance(error, EngineError) and error.message == CUT_OFF and error.turn == 1
    assert isinstance(finished, TurnFinished) and finished.reason == "error"
    reducer = Reducer()
    for event in events:
        reducer.apply(event)
    assert not reducer.busy and reducer.turn is not None and reducer.turn.text == finished.text != ""
    assert finished.statistics.num_tokens == reducer.turn.num_tokens


def test_a_file_that_is_no_trace_ends_the_engine_in_words(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", write_text(tmp_path / "text.jsonl")):
        with replay(path) as (source, events):
            until(lambda events=events: bool(events))
            source.join(60)
        (error,) = events
        assert isinstance(error, EngineError) and error.fatal and error.hint


def write_text(path: Path) -> Path:
    path.write_text("hello")
    return path


# The bundled traces


@pytest.mark.parametrize("name", sorted(bundled_recordings().keys() - {"lesson"}))
def test_bundled_recordings_are_whole_small_and_of_the_bundled_pair(name: str) -> None:
    path = bundled_recordings()[name]
    trace = read_recording(path)
    assert trace.problem is None and path.stat().st_size < 100_000
    assert trace.ready is not None and trace.ready.target_hash and trace.ready.drafter_hash
    sampled = {step.temperature > 0 for step in trace.steps}
    assert sampled == {name.endswith("sampled")}
    assert all(mark.event.reason == "stop" for mark in trace.marks if isinstance(mark.event, TurnFinished))


def test_the_bundled_recordings_are_told_of_and_take_little_room() -> None:
    assert SHOWN.keys() == bundled_recordings().keys(), "whoever chooses among them is told what each shows"
    rounds = sum(len(read_recording(path).steps) for path in bundled_recordings().values())
    assert sum(path.stat().st_size for path in bundled_recordings().values()) / rounds < 80, "bytes a round"


def test_traces_are_found_by_name_and_by_path(tmp_path: Path) -> None:
    assert find_recording("demo") == find_recording("code") == RECORDINGS / "code.jsonl"
    own = write(tmp_path / "mine.jsonl", run_of(2))
    assert find_recording(str(own)) == own
    with pytest.raises(RecordingError, match="no file, recording or conversation"):
        find_recording("nope")
    with pytest.raises(RecordingError, match="not a conversation"):
        find_recording(str(write_text(tmp_path / "text.jsonl")))
