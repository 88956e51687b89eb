"""What screen, session, trace and export say of a recorded stream: the server's own numbers, all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.core.conversation.reducer import Reducer
from dflash_tui.core.export.document import ExportedAnswer, collect
from dflash_tui.core.figures.tables import GaugeFacts, tables
from dflash_tui.core.replay.recording import read_recording
from dflash_tui.core.sessions.sessions import SessionLog, load_session
from engine.events import EngineReady, Step
from tests.attach.servers import streams
from tests.pace import sampled

from .test_captures import play

READY = EngineReady("model", None, "", "", 1, 0, 0.0, server="http://gpu-box:8000", dialect="vLLM", times="arrival")


@pytest.mark.parametrize("path", sampled(list(streams()), 4), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_figures_are_the_servers_wherever_they_stand(path: Path, tmp_path: Path) -> None:
    played = play(path)
    reducer, log, trace = Reducer(), SessionLog(tmp_path / "a.jsonl"), SessionLog.record_into(tmp_path / "a.jsonl")
    log.user(1, "hi")
    for event in (READY, *played.events):
        reducer.apply(event)
        log.record(event)
        trace.record(event)
    log.close()
    trace.close()
    turn, told = reducer.turn, played.finished.statistics
    assert turn is not None and turn.text == played.finished.text
    steps = list(turn.rounds)
    assert steps == played.steps
    assert [event for event in read_recording(tmp_path / "a.jsonl").events() if isinstance(event, Step)] == steps
    (kept,) = load_session(tmp_path / "a.jsonl").turns
    assert [event for event in kept.events() or () if isinstance(event, Step)] == steps
    answer = next(iter(collect(played.events).answers()), ExportedAnswer("", ()))
    assert list(answer.steps) == steps
    shown = turn.acceptance
    rows = dict(row for table in tables(GaugeFacts(turn.snapshot, times="arrival")) if table.id == "acceptance"
                for row in table.rows)  # fmt: skip
    if not path.stem.endswith("_n2"):  # two answers at once, for which nobody asks: the server counts both
        assert turn.num_tokens == told.num_tokens
    if told.num_draft_tokens:
        assert rows["drafted tokens that were checked"] == f"{told.num_draft_tokens:,}"
        assert rows["of these accepted"].startswith(f"{told.num_accepted_draft_tokens:,} ")
    if shown.num_spec_steps and turn.snapshot.totals is None:
        assert (shown.num_spec_steps, answer.statistics.num_spec_steps) == (told.num_spec_steps,) * 2
        assert shown.mean_acceptance_length == pytest.approx(told.mean_acceptance_length)
        assert tuple(shown.histogram[: len(told.acceptance_histogram)]) == told.acceptance_histogram
