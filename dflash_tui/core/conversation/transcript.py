"""An older conversation on the screen: the same pieces in the same looks as when it was written."""

from __future__ import annotations

from ..sessions.sessions import CUT_OFF, Conversation, Turn
from ..text.spans import Span, Spans
from .reducer import Reducer, turn_summary


def recall(conversation: Conversation, reducer: Reducer) -> Spans:
    """Have ``reducer`` go through the turns as if just decoded; returns what the transcript shows."""
    phase, plain_ms = reducer.phase, reducer.plain_ms
    spans = Spans()
    for turn in conversation.turns:
        events = turn.events()
        if events is None:
            spans.extend(Spans.of(_text_only(turn)))
            continue
        reducer.show_question(turn.question)
        for event in events:
            reducer.apply(event)
        spans.extend(reducer.take_spans())
    reducer.phase, reducer.plain_ms = phase, plain_ms
    return spans


def _text_only(turn: Turn) -> list[Span]:
    """A turn of which an earlier version of the program kept no rounds: nobody knows its verdicts."""
    answer, thought = turn.answer, turn.thought
    error = turn.error or (CUT_OFF if turn.reason is None else None)
    gap = "" if not answer else "\n" if answer.endswith("\n") else "\n\n"
    return [
        Span(turn.question, "prompt"),
        Span("\n\n", "plain"),
        *([Span(f"{thought}\n\n", "thought")] if thought else []),
        Span(answer, "plain"),
        *([Span(f"✗ {error}\n", "error")] if error else []),
        Span(f"{gap}{turn_summary(turn.finished())}\n\n", "note"),
    ]
