"""``import engine``: what a program that embeds it sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import get_type_hints

import pytest

import engine
from engine.commands import Settings
from engine.events import Channel
from engine.library import Options
from support.events_for_tests import make_step

QUESTION = "Write a quicksort in Python"


@pytest.fixture(scope="module")
def pair() -> Iterator[engine.Pair]:
    with engine.load(device="cpu", time_rounds=False) as pair:
        yield pair


def events_of(pair: engine.Pair, *conversation: str) -> list[engine.Event]:
    roles = ("user", "assistant")
    messages = [engine.Message(roles[number % 2], said) for number, said in enumerate(conversation)]
    return list(pair.generate(messages, max_new_tokens=40))


def test_thoughts_and_marks_are_no_answer() -> None:
    channels: tuple[Channel, ...] = ("thought", "answer", "control")
    emitted = tuple(engine.EmittedToken(1, channel, "plain", channel) for channel in channels)
    assert engine.text(replace(make_step(0, 0), emitted=emitted)) == "answer"


def test_an_answer_is_its_events(pair: engine.Pair) -> None:
    events = list(pair.generate(QUESTION, temperature=0.8, seed=1, max_new_tokens=40))
    started, prefilled, *steps, finished = events
    assert isinstance(started, engine.TurnStarted) and started.settings["temperature"] == 0.8
    assert isinstance(prefilled, engine.PrefillDone) and all(isinstance(step, engine.Step) for step in steps)
    assert isinstance(finished, engine.TurnFinished) and finished.text == "".join(map(engine.text, events)) != ""
    plain = pair.answer(QUESTION, temperature=0.8, seed=1, max_new_tokens=40, speculation=False)
    assert plain == finished.text, "speculation never changes the text"


def test_the_next_turn_reads_what_is_new(pair: engine.Pair) -> None:
    answer = pair.answer(QUESTION, max_new_tokens=40)
    started = events_of(pair, QUESTION, answer, "And with a docstring?")[0]
    assert isinstance(started, engine.TurnStarted) and 5 < started.num_reused_tokens < started.num_prompt_tokens


@pytest.mark.parametrize("read", [0, 1, 2, 4])
def test_an_answer_that_nobody_reads_on_ends(read: int, pair: engine.Pair) -> None:
    """After no event, after one, in the middle: what follows is the answer that a fresh pair gives."""
    expected = pair.answer("hello")
    left = pair.generate(QUESTION, max_new_tokens=40)
    for _ in range(read):
        next(left)
    if read % 2:
        left.close()
    assert pair.answer("hello") == expected
    assert next(left, None) is None, "the next question ended it"


def test_a_prompt_that_cannot_be_asked(pair: engine.Pair) -> None:
    before = pair.answer(QUESTION, max_new_tokens=20)
    with pytest.raises(engine.UsageFailure, match="Nothing was asked"):
        pair.answer([])
    with pytest.raises(engine.UsageFailure, match="the context holds 8192") as caught:
        pair.answer("word " * 9000)
    assert not caught.value.advice and "the model takes no more" in caught.value.hint
    with pytest.raises(ValueError, match="temperature must be between 0 and 2"):
        pair.generate("hello", temperature=3.0)
    assert pair.answer(QUESTION, max_new_tokens=20) == before


def test_an_error_in_the_engine_is_a_failure_and_forgets_what_is_half_written(
    pair: engine.Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = pair.answer(QUESTION, max_new_tokens=20)
    with monkeypatch.context() as patch:
        patch.setattr("engine.decoding.decoder.sample", lambda *_, **__: 1 / 0)
        with pytest.raises(engine.EngineFailure, match="ZeroDivisionError") as caught:
            pair.answer(QUESTION)
    assert isinstance(caught.value.__cause__, ZeroDivisionError) and caught.value.hint
    started = next(pair.generate(QUESTION))
    assert isinstance(started, engine.TurnStarted) and started.num_reused_tokens == 0
    assert pair.answer(QUESTION, max_new_tokens=20) == expected


def test_what_cannot_be_loaded() -> None:
    with pytest.raises(engine.WeightsFailure, match="no folder nowhere") as caught:
        engine.load("nowhere", device="cpu")
    assert caught.value.kind == "weights" and caught.value.hint


def test_loading_says_how_far_it_is_and_a_closed_pair_answers_nothing() -> None:
    told: list[engine.LoadProgress] = []
    pair = engine.load(progress=told.append, drafter="none", device="cpu", max_context=512, time_rounds=False)
    assert pair.ready.drafter is None and pair.ready.max_context == 512
    assert "loading the target" in {step.phase for step in told}
    running = pair.generate(QUESTION)
    next(running)
    pair.close()
    pair.close()
    assert next(running, None) is None
    with pytest.raises(engine.UsageFailure, match="closed"):
        pair.answer("hello")


@pytest.mark.parametrize(
    ("keywords", "whole", "positional"),
    [(Options, engine.EngineOptions, {"target"}), (Settings, engine.GenerationSettings, set())],
)
def test_keywords_are_the_fields(keywords: type, whole: type, positional: set[str]) -> None:
    hints = get_type_hints(whole)
    assert get_type_hints(keywords) == {f.name: hints[f.name] for f in fields(whole) if f.name not in positional}


def test_every_public_name_is_there_and_documented() -> None:
    own = [getattr(engine, name) for name in engine.__all__ if name != "Event"]
    methods = [getattr(engine.Pair, name) for name in ("generate", "answer", "close")]
    assert all(each.__doc__ and len(each.__doc__) > 20 for each in (engine, *own, *methods))
