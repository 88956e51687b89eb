"""Blocks of rounds: some rows of one turn as deflated JSON, which can be read without any other block."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.events import Step

from .numbers import MAX_NUMBER, RecordError
from .rows import COLUMNS, Piece, Row, row_of, step_of

ROUNDS = 32
"""Rounds of a full block. Longer ones would hardly be smaller, and take longer to read one round of."""
MAX_BYTES = 4 * 2**20
"""Of a block, inflated: far more than rounds take."""
_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def encoded(turn: int, first: int, steps: Sequence[Step]) -> bytes:
    """The block of these steps, the first of which is number ``first`` of its turn. The columns of their rows stand in
    it, not the rows: what is alike is then side by side, and deflates to fewer bytes."""
    pieces: dict[Piece, int] = {}
    columns = list(zip(*[row_of(step, pieces) for step in steps], strict=True))
    ids, texts = zip(*pieces, strict=True) if pieces else ((), ())
    return zlib.compress(_as_json([turn, first, ids, texts, *columns]).encode("utf-8", "replace"))


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
        turn, first, ids, texts, *columns = json.loads(text)
        pieces = tuple(map(_piece, zip(ids, texts, strict=True)))
        rows = tuple(zip(*columns, strict=True))
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        raise RecordError("a block of rounds is damaged") from error
    whole = inflate.eof and not inflate.unconsumed_tail and not inflate.unused_data
    if not (whole and len(columns) == COLUMNS and 0 < len(rows) <= ROUNDS and _is_number(turn) and _is_number(first)):
        raise RecordError("a block of rounds is not what such blocks are")
    return Block(turn, first, pieces, rows)


def _piece(piece: Piece) -> Piece:
    token, text = piece
    if not (token is None or _is_number(token)) or not (text is None or isinstance(text, str)):
        raise RecordError("a token is no token")
    return piece


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_NUMBER
