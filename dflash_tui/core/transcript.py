"""An older conversation as the transcript shows it: the same pieces in the same looks as when it was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from engine.events import FinishReason, TurnFinished, TurnStatistics

from .reducer import THOUGHT_HEAD, Look, Span, turn_summary
from .sessions import Conversation, Turn


def conversation_spans(conversation: Conversation) -> list[Span]:
    return [span for turn in conversation.turns for span in _turn_spans(turn)]


def _turn_spans(turn: Turn) -> Iterator[Span]:
    yield Span(turn.question, "prompt")
    yield Span("\n\n", "plain")
    thinking = False
    for pieces in turn.rounds:
        for piece in pieces:
            thought = piece.channel == "thought"
            if thought and not thinking:
                yield Span(THOUGHT_HEAD, "note")
            elif thinking and not thought:
                yield Span("\n\n", "thought")
            thinking = thought
            look: Look = "thought" if thought else piece.verdict or "plain"
            yield Span(piece.text, look)
    if turn.error:
        yield Span(f"✗ {turn.error}\n", "error")
    answer = turn.answer
    gap = "" if not answer else "\n" if answer.endswith("\n") else "\n\n"
    yield Span(f"{gap}{_summary(turn)}\n\n", "note")


def _summary(turn: Turn) -> str:
    """As it stood under the answer; a turn that was cut off by a crash says so."""
    if turn.reason is None:
        return "cut off: the program ended within this answer"
    reason: FinishReason = turn.reason  # type: ignore[assignment]  # written from one
    return turn_summary(TurnFinished(turn.number, reason, turn.answer, "", _statistics(turn.statistics)))


def _statistics(values: dict[str, Any]) -> TurnStatistics:
    """Those that this version knows."""
    known = {field.name for field in fields(TurnStatistics)}
    return TurnStatistics(**{name: value for name, value in values.items() if name in known})
