from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from dflash_tui.core.conversation.reducer import Reducer, turn_summary
from dflash_tui.core.conversation.step_spans import THOUGHT_HEAD
from dflash_tui.core.text.spans import Span
from engine.events import (
    EmittedToken,
    EngineError,
    EngineReady,
    LoadProgress,
    Notice,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
)
from support.events_for_tests import make_step
from tests.core.rounds_for_tests import rounds

READY = EngineReady("target", "drafter", "cpu", "float32", 16, 4096, 1.0)


def started(turn: int = 1) -> Reducer:
    reducer = Reducer()
    for event in (READY, TurnStarted(turn, 40, 12, {}), PrefillDone(turn, 20.0)):
        reducer.apply(event)
    return reducer


@given(rounds())
def test_transcript_is_the_answer_token_for_token(steps: list[Step]) -> None:
    reducer = started()
    for step in steps:
        reducer.apply(step)
    tokens = [token for step in steps for token in step.emitted]
    assert reducer.turn is not None
    assert reducer.turn.text == "".join(token.text for token in tokens)
    spans = reducer.take_spans()
    assert spans == [Span(token.text, token.verdict, 1, number) for number, token in enumerate(tokens) if token.text]
    assert reducer.take_spans() == []


def test_thoughts_stand_apart_and_control_tokens_are_not_shown() -> None:
    reducer = started()
    tokens = (
        EmittedToken(1, "<think>", "plain", "control"),
        EmittedToken(2, "hm", "accepted", "thought"),
        EmittedToken(3, "yes", "corrected"),
    )
    reducer.apply(replace(make_step(0, 0), emitted=tokens))
    assert reducer.take_spans() == [
        Span(THOUGHT_HEAD, "note"),
        Span("hm", "thought", 1, 1),
        Span("\n\n", "thought"),
        Span("yes", "corrected", 1, 2),
    ]
    assert reducer.turn is not None and reducer.turn.text == "yes"


def test_phases_follow_the_events() -> None:
    reducer = Reducer()
    assert reducer.phase == "loading"
    for event, phase in [
        (READY, "ready"),
        (TurnStarted(1, 1, 0, {}), "prefill"),
        (PrefillDone(1, 1.0), "streaming"),
        (TurnFinished(1, "stop", "a"), "ready"),
        (EngineError("device", "out of memory", fatal=True), "failed"),
    ]:
        reducer.apply(event)
        assert reducer.phase == phase


def test_loading_keeps_the_latest_of_each_phase() -> None:
    reducer = Reducer()
    for event in (LoadProgress("read", 1, 9), LoadProgress("read", 9, 9), LoadProgress("warm up", 0, 0)):
        reducer.apply(event)
    assert reducer.loading == [LoadProgress("read", 9, 9), LoadProgress("warm up", 0, 0)]


def test_rounds_of_another_turn_are_ignored() -> None:
    reducer = started(turn=2)
    reducer.apply(make_step(3, 15))
    assert reducer.take_spans() == []


def test_an_error_of_a_turn_is_shown_and_does_not_end_the_engine() -> None:
    reducer = started()
    reducer.apply(EngineError("usage", "The prompt is too long.", "Shorten it.", turn=1))
    reducer.apply(TurnFinished(1, "error", ""))
    shown = "".join(span.text for span in reducer.take_spans())
    assert "The prompt is too long." in shown and "Shorten it." in shown
    assert reducer.phase == "ready" and reducer.failure is None


@pytest.mark.parametrize(("reason", "words"), [("stopped", "stopped"), ("length", "limit"), ("context", "Ctrl+N")])
def test_the_summary_says_why_a_turn_ended_early(reason: str, words: str) -> None:
    assert words in turn_summary(TurnFinished(1, reason, "a", "", TurnStatistics(num_tokens=3)))  # type: ignore[arg-type]


def test_the_summary_starts_a_line_of_its_own() -> None:
    for text, gap in (("a", "\n\n"), ("a\n", "\n"), ("", "")):
        reducer = started()
        reducer.apply(TurnFinished(1, "stop", text))
        note = reducer.take_spans()[0].text
        assert note.startswith(f"{gap}0 tokens") and note.endswith("\n\n")


def test_what_a_source_wants_known_waits_for_the_end_of_the_answer_and_is_said_once() -> None:
    reducer, notice = started(), Notice("It accepts nothing.", "serve --other")
    reducer.apply(make_step(0, 0))
    reducer.take_spans()
    reducer.apply(notice)
    assert reducer.take_spans() == []
    reducer.apply(TurnFinished(1, "stop", "x"))
    assert reducer.take_spans()[-1] == Span("It accepts nothing.\n  serve --other\n\n", "note")
    reducer.apply(notice)
    assert reducer.take_spans() == []
