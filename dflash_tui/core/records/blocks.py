"""Blocks of rounds: some rows of one turn as deflated JSON, which can be read without any other block."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.events import Step

from .numbers import MAX_NUMBER, RecordError
from .rows import COLUMNS, Piece, Row, row_of, step_of

ROUNDS = 32
"""Rounds of a full block. Longer ones would hardly be smaller, and take longer to read one round of."""
MAX_BYTES = 4 * 2**20
"""Of a block, inflated: far more than rounds take."""
_ACCEPTED, _KEPT, _OWN = 9, 13, 14
"""Places in a row: accepted tokens; of the emitted ones those that were drafted, and the others."""
_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def encoded(turn: int, first: int, steps: Sequence[Step]) -> bytes:
    """The block of these steps, the first of which is number ``first`` of its turn. The columns of their rows stand in
    it, not the rows: what is alike is then side by side, and deflates to fewer bytes."""
    pieces: dict[Piece, int] = {}
    columns = list(map(list, zip(*_shortened(row_of(step, pieces) for step in steps), strict=True)))
    for column in columns:
        while len(column) > 1 and column[-1] == column[-2]:
            column.pop()
    ids, texts = zip(*pieces, strict=True) if pieces else ((), ())
    return zlib.compress(_as_json([turn, first, len(steps), ids, texts, *columns]).encode("utf-8", "replace"))


def _shortened(rows: Iterable[Row]) -> Iterator[Row]:
    """What rows say beyond what was to be expected: a round begins where the one before it ended, lasts as long as its
    draft and its pass, adds to the context what it emits, and emits what was accepted. Most of that is a small number
    or always the same."""
    last_index = last_time = last_context = 0
    for index, time, draft, verify, total, context, *rest in rows:
        accepted, kept, emitted = _counts(rest)
        rest[_ACCEPTED - 6] = accepted - kept
        yield (
            index - last_index, time - last_time - total, draft, verify, total - (draft or 0) - (verify or 0),
            context - last_context - emitted, *rest,
        )  # fmt: skip
        last_index, last_time, last_context = index, time, context


def _lengthened(rows: Iterable[Row]) -> Iterator[Row]:
    """The inverse. Raises ``TypeError`` for what is no row."""
    index = time = context = 0
    for more, pause, draft, verify, rest_of_time, grown, *rest in rows:
        total = rest_of_time + (draft or 0) + (verify or 0)
        beyond, kept, emitted = _counts(rest)
        rest[_ACCEPTED - 6] = beyond + kept
        index, time, context = index + more, time + pause + total, context + grown + emitted
        yield (index, time, draft, verify, total, context, *rest)


def _counts(rest: Sequence[Any]) -> tuple[int, int, int]:
    """Of a row behind its first six entries: what it says of accepted tokens, how many of the emitted ones it keeps of
    the draft, and how many are emitted in all."""
    kept = rest[_KEPT - 6]
    kept = kept[0] if isinstance(kept, list) else kept
    return rest[_ACCEPTED - 6], kept, kept + len(rest[_OWN - 6]) // 3


@dataclass(frozen=True, slots=True)
class Block:
    """A block, inflated. Its rows become steps when they are asked for."""

    turn: int
    first: int
    """The number of its first round in the turn."""
    pieces: tuple[Piece, ...]
    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def step(self, place: int) -> Step:
        """Raises :class:`RecordError` for a damaged row."""
        return step_of(self.rows[place], self.turn, self.pieces)

    def steps(self, start: int = 0) -> Iterator[Step]:
        """Those from place ``start`` of the block on."""
        return map(self.step, range(start, len(self.rows)))


def decoded(data: bytes) -> Block:
    """The inverse of :func:`encoded`. Raises :class:`RecordError` for what is no block."""
    inflate = zlib.decompressobj()
    try:
        text = inflate.decompress(data, MAX_BYTES)
        turn, first, *content = json.loads(text)
        if len(content) == COLUMNS + 2:  # before format 9 of traces: whole columns
            ids, texts, *columns = content
            rows = tuple(zip(*columns, strict=True))
        else:
            count, ids, texts, *columns = content
            rows = tuple(_lengthened(zip(*[_with_repeats(column, count) for column in columns], strict=True)))
        pieces = tuple(map(_piece, zip(ids, texts, strict=True)))
    except (zlib.error, ValueError, TypeError, IndexError, RecursionError) as error:
        raise RecordError("a block of rounds is damaged") from error
    whole = inflate.eof and not inflate.unconsumed_tail and not inflate.unused_data
    if not (whole and len(columns) == COLUMNS and 0 < len(rows) <= ROUNDS and _is_number(turn) and _is_number(first)):
        raise RecordError("a block of rounds is not what such blocks are")
    return Block(turn, first, pieces, rows)


def _with_repeats(column: list[Any], count: int) -> list[Any]:
    """``count`` entries, of which the last one stands for those behind it."""
    if not (isinstance(column, list) and type(count) is int and 0 < len(column) <= count <= ROUNDS):
        raise RecordError("a column of a block is none")
    return [*column, *[column[-1]] * (count - len(column))]


def _piece(piece: Piece) -> Piece:
    token, text = piece
    if not (token is None or _is_number(token)) or not (text is None or isinstance(text, str)):
        raise RecordError("a token is no token")
    return piece


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_NUMBER
