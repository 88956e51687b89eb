"""A conversation that comes back looks as it looked when it was written, and can be looked into as deeply."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.conversation.reducer import Reducer
from dflash_tui.core.conversation.transcript import retell
from dflash_tui.core.conversation.turn import CUT_OFF
from dflash_tui.core.export.document import with_factors
from dflash_tui.core.sessions.sessions import Conversation, SessionLog, load_session
from dflash_tui.core.text.spans import Span
from engine.commands import GenerationSettings
from engine.events import EngineError, Event, FinishReason, PrefillDone, Step, TurnFinished, TurnStarted, TurnStatistics
from support.events_for_tests import make_step
from tests.pace import examples

from ..rounds_for_tests import rounds
from ..sessions.test_sessions import READY

QUICKLY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
STARTED = TurnStarted(1, 5, 2, {"seed": 3, "speculation": True}, "question")


def turn_of(steps: list[Step], reason: FinishReason | None = "stop") -> list[Event]:
    """The events of a turn, cut off without a ``reason``."""
    answer = "".join(token.text for step in steps for token in step.emitted)
    statistics = TurnStatistics(num_tokens=7, num_spec_steps=2, mean_acceptance_length=3.5, tok_s=99.0)
    ending: list[Event] = [TurnFinished(1, reason, answer, "", statistics)] if reason else []
    return [STARTED, PrefillDone(1, 12.5), *steps, *ending]


def kept(directory: Path, events: list[Event]) -> Conversation:
    """The events, written down and read back."""
    log = SessionLog.create(directory)
    log.user(1, "question")
    for event in events:
        log.record(event)
    log.close()
    return load_session(log.path)


def played(events: list[Event]) -> list[Span]:
    reducer = Reducer()
    reducer.show_question("question")
    for event in events:
        reducer.apply(event)
    return reducer.take_spans()


def told(conversation: Conversation) -> tuple[list[Span], Chat]:
    """What the transcript shows of it."""
    chat = Chat(GenerationSettings(), lambda command: None)
    chat.resume(conversation)
    return [span for spans in retell(chat) for span in spans], chat


@QUICKLY
@given(rounds(), st.sampled_from(["stop", "stopped", "length", "error"]))
def test_what_comes_back_is_what_was_shown(tmp_path: Path, steps: list[Step], reason: FinishReason) -> None:
    steps = [replace(step, time=round(step.time, 6)) for step in steps]  # in microseconds, as the engine's are
    events = turn_of(steps, reason)
    spans, chat = told(kept(tmp_path, events))
    assert spans == played(events)
    (turn,) = chat.turns
    assert list(turn.rounds) == steps
    assert (turn.started, turn.prefill_ms, turn.finished) == (STARTED, 12.5, events[-1])


def test_what_is_known_of_the_engine_stays(tmp_path: Path) -> None:
    plain = replace(STARTED, settings={"speculation": False})
    events = [plain, make_step(0, 0), TurnFinished(1, "stop", "x", "", TurnStatistics(num_tokens=99, tok_s=5.0))]
    reducer = told(kept(tmp_path, events))[1].reducer
    assert (reducer.phase, reducer.ready) == ("loading", None)


def test_an_answer_that_was_refused_counts_nothing(tmp_path: Path) -> None:
    error = EngineError("usage", "I can't.", "F1 can.", turn=1)
    refused: list[Event] = [STARTED, error, TurnFinished(1, "error", "", "", TurnStatistics())]
    assert [span.text for span in played(refused)][-2:] == ["✗ I can't.\n  F1 can.\n", "\n"]


def test_an_answer_that_a_crash_cut_off_says_so(tmp_path: Path) -> None:
    conversation = kept(tmp_path, turn_of([make_step(0, 0, index=0), make_step(3, 5)], reason=None))
    spans, _ = told(conversation)
    assert Span(f"\n\n✗ {CUT_OFF}\n", "error") in spans and "ended by an error" in spans[-1].text
    assert conversation.turns[0].answer == "xx0x1x2x!"


@pytest.mark.parametrize("lost", [0, 1])
def test_a_block_that_is_damaged_costs_its_rounds_alone(tmp_path: Path, lost: int) -> None:
    steps = [make_step(index % 4, 5, index=index, time=index / 10, text=f"w{index}") for index in range(70)]
    path = kept(tmp_path, turn_of(steps)).path
    lines = path.read_text().splitlines(keepends=True)
    blocks = [number for number, line in enumerate(lines) if line.startswith('"')]
    number = blocks[lost]
    lines[number] = lines[number][:60] + lines[number][64:]
    path.write_text("".join(lines))
    conversation = load_session(path)
    (turn,) = conversation.turns
    whole = steps[:32] if lost else steps[32:]
    assert len(blocks) == 2 and list(turn.rounds) == whole and conversation.damaged == 2 - lost
    assert turn.answer == "".join(token.text for step in whole for token in step.emitted)
    assert turn.answer in "".join(span.text for span in told(conversation)[0])


def test_an_error_comes_back_in_its_place(tmp_path: Path) -> None:
    events = [STARTED, EngineError("generation", "It broke.", "Ask again.", turn=1), TurnFinished(1, "error", "")]
    assert Span("✗ It broke.\n  Ask again.\n", "error") in told(kept(tmp_path, events))[0]


def test_a_conversation_can_be_exported_round_by_round(tmp_path: Path) -> None:
    steps = [make_step(0, 0, index=0), make_step(3, 5)]
    (section,) = with_factors(kept(tmp_path, turn_of(steps)).turns)
    assert list(section.rounds) == steps
    assert (section.question, section.settings, section.reason) == ("question", STARTED.settings, "stop")


def test_a_thousand_tokens_take_little_room(tmp_path: Path) -> None:
    steps = [make_step(9, 15, index=index, time=0.01 * index, text=f"w{index} ") for index in range(100)]
    size = kept(tmp_path, turn_of(steps)).path.stat().st_size
    assert size < 60_000, f"{size / 100:.0f} bytes a round"


def test_an_answer_keeps_how_many_times_as_fast_it_was(tmp_path: Path) -> None:
    """The second has too few rounds for a number of its own: it counts with the first's, which a later chat lacks."""
    log = SessionLog.create(tmp_path)
    chat = Chat(GenerationSettings(), lambda command: None, lambda: log)
    log.record(READY)
    chat.apply(READY)
    for turn, rounds_of in ((1, 40), (2, 6)):
        chat.ask("question")
        steps = [make_step(3, 5, index=index, time=index / 100) for index in range(1, rounds_of)]
        steps = [replace(step, turn=turn, alone_ms=1.0 + step.index % 3 / 20) for step in steps]
        first = replace(make_step(0, 0, index=0), turn=turn)
        for event in (replace(STARTED, turn=turn), first, *steps, TurnFinished(turn, "stop", "", "")):
            log.record(event)
            chat.apply(event)
    shown = [turn.snapshot.speed_up for turn in chat.turns]
    log.close()
    assert None not in shown and shown[1] is not None and shown[1].as_text() in list(retell(chat)[1])[-1].text
    conversation = load_session(log.path)
    again = told(conversation)[1]
    found = [turn.snapshot.speed_up for turn in again.turns]
    exported = [answer.speed_up for answer in with_factors(conversation.turns)]
    for each in (found, exported):
        assert [(one.as_text(2), one.about) for one in each if one] == [
            (one.as_text(2), one.about) for one in shown if one
        ]
    below = [[list(spans)[-1].text.strip() for spans in retell(each)] for each in (chat, again)]
    assert below[0] == below[1]
