"""A conversation that comes back looks as it looked when it was written."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui.core.reducer import Reducer, Span
from dflash_tui.core.sessions import SessionLog, load_session
from dflash_tui.core.transcript import conversation_spans
from engine.events import EmittedToken, EngineError, Event, Step, TurnFinished, TurnStarted, TurnStatistics

tokens = st.builds(
    EmittedToken,
    st.just(1),
    st.text(max_size=5),
    st.sampled_from(["accepted", "corrected", "bonus", "plain"]),
    st.sampled_from(["answer", "answer", "thought"]),
)


def joined(spans: list[Span]) -> list[tuple[str, str]]:
    """Text and look, neighbours of one look together."""
    merged: list[tuple[str, str]] = []
    for span in spans:
        if span.text and merged and merged[-1][1] == span.look:
            merged[-1] = (merged[-1][0] + span.text, span.look)
        elif span.text:
            merged.append((span.text, span.look))
    return merged


def played(events: list[Event]) -> list[Span]:
    reducer = Reducer()
    for event in events:
        reducer.apply(event)
    return reducer.take_spans()


def said(directory: Path, events: list[Event]) -> Path:
    log = SessionLog.create(directory)
    log.user(1, "question")
    for event in events:
        log.record(event)
    log.close()
    return log.path


HEAD = [("question", "prompt"), ("\n\n", "plain")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.lists(tokens, max_size=4), max_size=6), st.sampled_from(["stop", "stopped", "length"]))
def test_what_comes_back_is_what_was_shown(tmp_path: Path, rounds: list[list[EmittedToken]], reason: str) -> None:
    events: list[Event] = [TurnStarted(1, 5, 0, {})]
    for index, emitted in enumerate(rounds):
        events.append(Step(1, index, 0.1, (), 0, tuple(emitted), 1, 0.0, 1.0, 1.0, 9, 16, 0.0))
    answer = "".join(token.text for emitted in rounds for token in emitted if token.channel == "answer")
    statistics = TurnStatistics(num_tokens=7, num_spec_steps=2, mean_acceptance_length=3.5, tok_s=99.0)
    events.append(TurnFinished(1, reason, answer, "", statistics))  # type: ignore[arg-type]
    conversation = load_session(said(tmp_path, events))
    assert joined(conversation_spans(conversation)) == joined([*(Span(*part) for part in HEAD), *played(events)])  # type: ignore[arg-type]


def test_rounds_keep_their_borders(tmp_path: Path) -> None:
    pieces = [["a", "bc"], ["d"]]
    events: list[Event] = [
        Step(1, i, 0.1, (), 0, tuple(EmittedToken(1, t, "accepted") for t in texts), 1, 0.0, 1.0, 1.0, 9, 16, 0.0)
        for i, texts in enumerate(pieces)
    ]
    (turn,) = load_session(said(tmp_path, events)).turns
    assert [[piece.text for piece in pieces] for pieces in turn.rounds] == pieces
    assert turn.reason is None
    assert conversation_spans(load_session(said(tmp_path, events)))[-1].text.strip().startswith("cut off")


def test_a_file_of_the_first_version_has_no_verdicts(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text(
        '{"type": "session", "version": 1, "created": "2026-11-20T10:00:00.000+00:00"}\n'
        '{"type": "user", "turn": 1, "text": "q", "time": ""}\n'
        '{"type": "text", "turn": 1, "answer": "yes", "thought": "hm"}\n'
        '{"type": "finished", "turn": 1, "reason": "stop", "statistics": {"num_tokens": 2, "unknown": 1}}\n'
    )
    (turn,) = load_session(path).turns
    assert [[(piece.text, piece.verdict) for piece in pieces] for pieces in turn.rounds] == [
        [("hm", None), ("yes", None)]
    ]
    looks = [(span.text, span.look) for span in conversation_spans(load_session(path))]
    assert ("yes", "plain") in looks and ("hm", "thought") in looks


def test_an_error_comes_back_in_its_place(tmp_path: Path) -> None:
    events: list[Event] = [EngineError("generation", "It broke.", turn=1), TurnFinished(1, "error", "")]
    spans = conversation_spans(load_session(said(tmp_path, events)))
    assert Span("✗ It broke.\n", "error") in spans and "ended by an error" in spans[-1].text
