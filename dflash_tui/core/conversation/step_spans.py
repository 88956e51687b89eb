"""Turns a step into spans of the transcript, and draws the mark ‹2/3› of a question or answer with versions."""

from __future__ import annotations

from engine.events import Step

from ..text.spans import Span, Spans, token_style

THOUGHT_HEAD = "✻ thought · Alt+H\n"
"""Stands above a thought, and alone where thoughts are folded away."""


class StepSpans:
    """What one turn's steps add to the transcript."""

    def __init__(self, turn: int) -> None:
        self._turn = turn
        self._num_tokens = 0
        self._thinking = False

    def tell(self, step: Step) -> Spans:
        spans, emitted = Spans(), step.emitted_columns
        for text, verdict, channel in zip(emitted.texts, emitted.verdicts, emitted.channels, strict=True):
            if channel != "control" and text:
                thought = channel == "thought"
                if thought and not self._thinking:
                    spans.append(Span(THOUGHT_HEAD, "note"))
                elif self._thinking and not thought:
                    spans.append(Span("\n\n", "thought"))
                self._thinking = thought
                spans.append(Span(text, token_style(channel, verdict), self._turn, self._num_tokens))
            self._num_tokens += 1
        return spans

    def skip(self, spans: Spans, num_tokens: int) -> None:
        """Go on behind steps that were told already as ``spans``; up to there the turn has ``num_tokens`` tokens."""
        self._num_tokens = num_tokens
        if spans:
            self._thinking = spans[-1].style == "thought"


def version_spans(number: int, count: int) -> list[Span]:
    """The mark beside what has versions; a click on its ends goes to the one before or behind."""
    if count < 2:
        return []
    return [Span("  ‹ ", "version"), Span(f"{number}/{count}", "version"), Span(" › ", "version")]


def noted(before: str, mark: list[Span], behind: str) -> list[Span]:
    """A note, with a version mark within it if there is one."""
    return [Span(before, "note"), *mark, Span(behind, "note")] if mark else [Span(before + behind, "note")]
