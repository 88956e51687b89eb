"""What every step of a trace adds to the transcript, in some fifteen bytes a token beside the text."""

from __future__ import annotations

from array import array
from typing import get_args

from .reducer import Look, Span

_LOOKS: tuple[Look, ...] = get_args(Look)
_CODES = {look: code for code, look in enumerate(_LOOKS)}
_UNWRITTEN = Span("", "plain")[2:]
"""Turn and token of what no model wrote."""


class SpanStore:
    """Append-only: the spans of one step after the other."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._looks = bytearray()
        self._tokens = array("i")
        """-1 for what no model wrote."""
        self._ends = array("q")

    def append(self, spans: list[Span]) -> None:
        """The spans of the next step."""
        for span in spans:
            self._texts.append(span.text)
            self._looks.append(_CODES[span.look])
            self._tokens.append(-1 if span.token is None else span.token)
        self._ends.append(len(self._texts))

    def between(self, start: int, stop: int, turn: int) -> list[Span]:
        """The spans of the steps from ``start`` to before ``stop``, all of turn number ``turn``."""
        part = slice(self._ends[start - 1] if start else 0, self._ends[stop - 1] if stop else 0)
        make = tuple.__new__  # a named tuple's own constructor takes three times as long
        return [
            make(Span, (text, _LOOKS[look], turn, token) if token >= 0 else (text, _LOOKS[look], *_UNWRITTEN))
            for text, look, token in zip(self._texts[part], self._looks[part], self._tokens[part], strict=True)
        ]
