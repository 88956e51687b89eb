"""Answers and documents made by hand, for exports, races and lessons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.export.document import CellTable, ExportedPage, Heading, Origin, Prose, RoundFigure
from engine.commands import GenerationSettings
from engine.events import EmittedToken, EngineError, Event, Step, TurnFinished, TurnStarted
from support.events_for_tests import make_step

HOSTILE = "</script><script>alert(1)</script>\x1b[31m\u202e\x00<img src=x onerror=alert(2)>&amp;\ud800 ]]> -->"


def turns_of(events: Iterable[Event]) -> list[Turn]:
    """The turns of a source's events; one that was cut short still runs."""
    turns: list[Turn] = []
    for event in events:
        if isinstance(event, TurnStarted):
            turns.append(Turn(event.turn))
        if turns:
            turns[-1].apply(event)
    return turns


def turn_of(steps: Iterable[Step], settings: dict[str, Any], question: str = "Tell me a story") -> Turn:
    """An answer of these rounds, which ended by itself."""
    (turn,) = turns_of([TurnStarted(1, 10, 0, settings, question), *steps])
    turn.apply(TurnFinished(1, "stop", turn.text))
    return turn


def make_answer(
    texts: Sequence[str] = ("Once", " upon", " a time"),
    *,
    question: str = "Tell me a story",
    seconds: float = 0.1,
    speculation: bool = True,
    probability: float = 0.9,
) -> Turn:
    """A first token alone, then a round per text with one accepted draft and that text as a correction."""
    steps = [make_step(0, 0, index=0, time=seconds, text=texts[0])]
    for index, text in enumerate(texts[1:], start=1):
        step = make_step(1, 3, index=index, time=seconds * (index + 1), text="~")
        own = EmittedToken(100 + index, text, "corrected", probability=probability)
        steps.append(replace(step, emitted=(step.emitted[0], own)))
    settings = GenerationSettings(speculation=speculation).to_dict()
    return turn_of(steps, settings, question)


def plain_answer(texts: Sequence[str], *, seconds: float = 0.1) -> Turn:
    """One token per pass of the target; ids are the tokens' places."""
    steps = [_plain_step(index, text, seconds * (index + 1)) for index, text in enumerate(texts)]
    settings = GenerationSettings(speculation=False).to_dict()
    return turn_of(steps, settings)


def _plain_step(index: int, text: str, time: float) -> Step:
    step = make_step(0, 0, index=index, time=time, text=text)
    return replace(step, emitted=(replace(step.emitted[0], id=index),), verify_width=min(index, 1))


def hostile_document() -> ExportedPage:
    """Every section, and nothing in it that a browser or a terminal should believe."""
    answer = make_answer(("Hi", HOSTILE, "日本語 🇪🇺 e\u0301", "\n\n", "\t"), question=HOSTILE)
    answer.name, answer.error = HOSTILE, EngineError("server", HOSTILE)
    sections = (
        Heading(HOSTILE),
        Prose(f"{HOSTILE}\n\n    {HOSTILE}"),
        CellTable((("name", HOSTILE), (HOSTILE, "1"))),
        RoundFigure(answer.rounds[1], HOSTILE),
        answer,
    )
    return ExportedPage(HOSTILE, sections, Origin(HOSTILE, HOSTILE, HOSTILE, HOSTILE, "2026-11-21T04:00:00+00:00"))


def answered(number: int, question: str, text: str, **known: Any) -> Turn:
    """A turn that has ended by itself."""
    turn = Turn(number, question, **known)
    turn.finish(TurnFinished(number, "stop", text))
    return turn
