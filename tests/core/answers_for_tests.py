"""Answers and documents made by hand, for exports, races and lessons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.export.document import CellTable, ExportedAnswer, ExportedPage, Heading, Origin, Prose, RoundFigure
from engine.commands import GenerationSettings
from engine.events import EmittedToken, Step, TurnFinished
from support.events_for_tests import make_step

HOSTILE = "</script><script>alert(1)</script>\x1b[31m\u202e\x00<img src=x onerror=alert(2)>&amp;\ud800 ]]> -->"


def make_answer(
    texts: Sequence[str] = ("Once", " upon", " a time"),
    *,
    question: str = "Tell me a story",
    seconds: float = 0.1,
    speculation: bool = True,
    probability: float = 0.9,
) -> ExportedAnswer:
    """A first token alone, then a round per text with one accepted draft and that text as a correction."""
    steps = [make_step(0, 0, index=0, time=seconds, text=texts[0])]
    for index, text in enumerate(texts[1:], start=1):
        step = make_step(1, 3, index=index, time=seconds * (index + 1), text="~")
        own = EmittedToken(100 + index, text, "corrected", probability=probability)
        steps.append(replace(step, emitted=(step.emitted[0], own)))
    settings = GenerationSettings(speculation=speculation).to_dict()
    return ExportedAnswer(question, tuple(steps), settings=settings, num_prompt_tokens=10, reason="stop")


def plain_answer(texts: Sequence[str], *, seconds: float = 0.1) -> ExportedAnswer:
    """One token per pass of the target; ids are the tokens' places."""
    steps = [_plain_step(index, text, seconds * (index + 1)) for index, text in enumerate(texts)]
    settings = GenerationSettings(speculation=False).to_dict()
    return ExportedAnswer("Tell me a story", tuple(steps), settings=settings, num_prompt_tokens=10, reason="stop")


def _plain_step(index: int, text: str, time: float) -> Step:
    step = make_step(0, 0, index=index, time=time, text=text)
    return replace(step, emitted=(replace(step.emitted[0], id=index),), verify_width=min(index, 1))


def hostile_document() -> ExportedPage:
    """Every section, and nothing in it that a browser or a terminal should believe."""
    answer = make_answer(("Hi", HOSTILE, "日本語 🇪🇺 e\u0301", "\n\n", "\t"), question=HOSTILE)
    sections = (
        Heading(HOSTILE),
        Prose(f"{HOSTILE}\n\n    {HOSTILE}"),
        CellTable((("name", HOSTILE), (HOSTILE, "1"))),
        RoundFigure(answer.steps[1], HOSTILE),
        replace(answer, label=HOSTILE, error=HOSTILE),
    )
    return ExportedPage(HOSTILE, sections, Origin(HOSTILE, HOSTILE, HOSTILE, HOSTILE, "2026-11-21T04:00:00+00:00"))


def answered(number: int, question: str, text: str, **known: Any) -> Turn:
    """A turn that has ended by itself."""
    turn = Turn(number, question, **known)
    turn.finish(TurnFinished(number, "stop", text))
    return turn
