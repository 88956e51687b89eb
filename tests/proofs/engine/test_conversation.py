"""A conversation through the engine thread: thinking, going back, and a context that fills up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.commands import Message
from engine.decoding import decoder
from engine.events import EngineError, TurnFinished, TurnStarted
from tests.engine.test_service import BUNDLED, ask, running

QUESTION = "Write a quicksort in Python"
LONG_QUESTION = "Write an HTML page with ten drones that fly over a dark grid"
WINDOW, SLACK = 256, 16
"""The bundled models' window; what a test leaves of the slack behind it."""


# --- thinking


@pytest.mark.usefixtures("bundled_pair")
def test_a_thought_stands_apart_and_leaves_the_history() -> None:
    """The next turn's prompt goes on from the question, where the caches were remembered."""
    with running(BUNDLED) as session:
        session.service.send(ask(1, "What is 23 + 48?", max_new_tokens=200, thinking=True))
        first = session.wait_for(TurnFinished, 1)
        assert first.thought and "71" in first.text and first.thought not in first.text
        history = (Message("user", "What is 23 + 48?"), Message("assistant", first.text))
        session.service.send(ask(2, "And 30 + 12?", *history, max_new_tokens=200, thinking=True))
        started = session.wait_for(TurnStarted, 2)
        second = session.wait_for(TurnFinished, 2)
        assert started.num_reused_tokens >= first.statistics.num_prompt_tokens - 1
    with running(BUNDLED) as session:
        session.service.send(ask(2, "And 30 + 12?", *history, max_new_tokens=200, thinking=True, speculation=False))
        fresh = session.wait_for(TurnFinished, 2)
        assert (fresh.text, fresh.thought) == (second.text, second.thought)


# --- going back


@pytest.mark.usefixtures("bundled_pair")
def test_asking_again_reuses_the_question_and_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer goes around the rings: only what was remembered leads back to the question."""
    monkeypatch.setattr(decoder, "PREFILL_CHUNK", SLACK)
    with running(BUNDLED) as session:
        for turn in (1, 2):
            session.service.send(ask(turn, LONG_QUESTION, max_new_tokens=WINDOW + SLACK))
        first, second = session.wait_for(TurnFinished, 1), session.wait_for(TurnFinished, 2)
        assert first.text == second.text and first.reason == "length"
        again = next(event for event in session.of_turn(2) if isinstance(event, TurnStarted))
        assert again.num_reused_tokens >= again.num_prompt_tokens - 5


# --- a full context


@pytest.mark.usefixtures("bundled_pair")
def test_a_full_context_leaves_a_conversation_that_goes_on() -> None:
    """The answer ends at the last token that fits; a longer question is refused with a next step; a shorter one, in
    place of the first, is answered as ever."""
    with running(replace(BUNDLED, max_context=90)) as session:
        session.service.send(ask(1, QUESTION, max_new_tokens=400))
        full = session.wait_for(TurnFinished, 1)
        assert full.reason == "context" and full.text
        assert full.statistics.num_prompt_tokens + full.statistics.num_tokens == 90
        history = (Message("user", QUESTION), Message("assistant", full.text))
        session.service.send(ask(2, "What is 47 + 38?", *history))
        assert session.wait_for(TurnFinished, 2).reason == "error"
        error = session.of_turn(2)[0]
        assert isinstance(error, EngineError) and error.kind == "usage" and not error.fatal
        assert "holds 90" in error.message and "max_context" in error.hint
        session.service.send(ask(3, QUESTION, max_new_tokens=400))
        assert session.wait_for(TurnFinished, 3).text == full.text
        session.service.send(ask(4, "Hello", max_new_tokens=50))
        assert session.wait_for(TurnFinished, 4).reason in ("stop", "length")
