"""What every step of a trace adds to the transcript, in some eighteen bytes a token beside the text."""

from __future__ import annotations

from array import array

from .spans import Labels, Spans


class SpanStore:
    """Append-only: the spans of one step after the other."""

    def __init__(self) -> None:
        self._spans = Spans()
        self._ends = array("q")

    def append(self, spans: Spans) -> None:
        """The spans of the next step."""
        self._spans.extend(spans)
        self._ends.append(len(self._spans))

    def between(self, start: int, stop: int, turn: int) -> Spans:
        """The spans of the steps from ``start`` to before ``stop``, all of turn number ``turn``. Makes no object per
        token."""
        part = slice(self._ends[start - 1] if start else 0, self._ends[stop - 1] if stop else 0)
        labels = self._spans.labels
        looks, tokens = labels.looks[part], labels.tokens[part]
        turns = array("I", (turn,)) * len(looks)
        return Spans(self._spans.texts[part], Labels(looks, labels.written[part], turns, tokens))
