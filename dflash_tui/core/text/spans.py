"""The pieces that a transcript is made of, in columns: an answer's worth of them is copied in a millisecond."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import and_
from typing import Literal, NamedTuple, get_args

from engine.events import Channel, Verdict
from engine.rounds.lazy_sequence import LazySequence

TokenStyle = Literal[
    "prompt", "accepted", "corrected", "bonus", "plain", "thought", "note", "error", "unknown",
    "version", "fold", "output", "text",
]  # fmt: skip
"""How a piece of the transcript is drawn: who wrote it, and for the answer, why the token was emitted. A ``version`` is
the mark beside what has versions, a ``fold`` a line that stands for a longer text, ``output`` that text itself,
and ``text`` what has no rounds: prose, tables."""
TOKEN_STYLES: tuple[TokenStyle, ...] = get_args(TokenStyle)
_CODES = {style: code for code, style in enumerate(TOKEN_STYLES)}
_SAID = bytes(code != _CODES["thought"] for code in range(256))
"""1 for each style but thoughts and 0 for these, by the style's code."""


class Span(NamedTuple):
    """A piece of the transcript in one style."""

    text: str
    style: TokenStyle
    turn: int = 0
    token: int | None = None
    """Which of that turn's emitted tokens it is, counted from 0; None for what no model wrote."""


def token_style(channel: Channel, verdict: Verdict) -> TokenStyle:
    """How a token of an answer is drawn."""
    return "thought" if channel == "thought" else verdict


class Labels:
    """The labels of pieces of a text, in ten bytes each: style, turn and token."""

    __slots__ = ("styles", "tokens", "turns", "written")

    def __init__(
        self,
        styles: Iterable[int] = (),
        written: Iterable[int] = (),
        turns: Iterable[int] = (),
        tokens: Iterable[int] = (),
    ) -> None:
        self.styles = bytearray(styles)
        """Places in ``TOKEN_STYLES``."""
        self.written = bytearray(written)
        """1 where the piece is a token, 0 where no model wrote it."""
        self.turns = array("I", turns)
        """The turn of each piece. One that no model wrote has that of the piece before it; the first, what its span
        names."""
        self.tokens = array("I", tokens)
        """Tokens of the turn up to and with this piece, so that pieces of one turn are in order."""

    def append(self, span: Span) -> None:
        turn, tokens = span.turn, 0
        if span.token is not None:
            tokens = span.token + 1
        elif self.turns:
            turn, tokens = self.turns[-1], self.tokens[-1]
        self.styles.append(_CODES[span.style])
        self.written.append(span.token is not None)
        self.turns.append(turn)
        self.tokens.append(tokens)

    def extend(self, others: Labels) -> None:
        start = len(self.styles)
        self.styles += others.styles
        self.written += others.written
        self.turns += others.turns
        self.tokens += others.tokens
        self._inherit_turns(start)

    def cut(self, length: int) -> None:
        """Forget the pieces behind the first ``length``."""
        for column in (self.styles, self.written, self.turns, self.tokens):
            del column[length:]

    def select(self, selected: Sequence[bool]) -> Labels:
        """The labels of the pieces for which ``selected`` is True."""
        some = Labels(*(compress(column, selected) for column in (self.styles, self.written, self.turns, self.tokens)))
        some._inherit_turns(0)
        return some

    def _inherit_turns(self, start: int) -> None:
        """Give the pieces from ``start`` on that no model wrote the turn and the tokens of the piece before each."""
        first_unset = self.written.find(0, max(start, 1))
        while first_unset >= 0:
            self.turns[first_unset], self.tokens[first_unset] = (
                self.turns[first_unset - 1],
                self.tokens[first_unset - 1],
            )
            first_unset = self.written.find(0, first_unset + 1)


class Spans(LazySequence[Span]):
    """Pieces in the order of the transcript. Append-only."""

    __slots__ = ("labels", "texts")

    def __init__(self, texts: list[str] | None = None, labels: Labels | None = None) -> None:
        self.texts = [] if texts is None else texts
        self.labels = Labels() if labels is None else labels
        """A label for each of the texts."""

    @classmethod
    def of(cls, spans: Iterable[Span]) -> Spans:
        """The spans in columns, one for each field."""
        if isinstance(spans, cls):
            return spans
        columns = cls()
        for span in spans:
            columns.append(span)
        return columns

    def append(self, span: Span) -> None:
        self.texts.append(span.text)
        self.labels.append(span)

    def extend(self, others: Spans) -> None:
        self.texts += others.texts
        self.labels.extend(others.labels)

    def without(self, style: TokenStyle) -> Spans:
        """The pieces in every other style."""
        code = _CODES[style]
        selected = [other != code for other in self.labels.styles]
        return Spans(list(compress(self.texts, selected)), self.labels.select(selected))

    @property
    def answer(self) -> str:
        """What a model wrote and did not only think."""
        labels = self.labels
        return "".join(compress(self.texts, map(and_, labels.written, labels.styles.translate(_SAID))))

    def __len__(self) -> int:
        return len(self.texts)

    def item_at(self, index: int) -> Span:
        text, style = self.texts[index], TOKEN_STYLES[self.labels.styles[index]]
        if not self.labels.written[index]:
            return Span(text, style)
        return Span(text, style, self.labels.turns[index], self.labels.tokens[index] - 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as lists have none


class SpanStore:
    """What every step of a trace adds to the transcript, in eighteen bytes a token beside the text."""

    def __init__(self) -> None:
        self._spans = Spans()
        self._ends = array("q")

    def append(self, spans: Spans) -> None:
        """The spans of the next step."""
        self._spans.extend(spans)
        self._ends.append(len(self._spans))

    def between(self, start: int, stop: int, turn: int) -> Spans:
        """The spans of steps ``start`` to before ``stop`` of number ``turn``, with no object per token."""
        bounds = slice(self._ends[start - 1] if start else 0, self._ends[stop - 1] if stop else 0)
        labels = self._spans.labels
        styles, tokens = labels.styles[bounds], labels.tokens[bounds]
        turns = array("I", (turn,)) * len(styles)
        return Spans(self._spans.texts[bounds], Labels(styles, labels.written[bounds], turns, tokens))
