"""Blocks of rounds: some rows of one turn as deflated JSON, which can be read without any other block."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import add, sub
from typing import Any

from .numbers import MAX_NUMBER, RecordError
from .rows import (
    ACCEPTED,
    CHANNELS,
    COLUMNS,
    CONTEXT,
    DRAFT,
    DRAFTED,
    INDEX,
    KEPT,
    OWN,
    TIME,
    TOTAL,
    VERIFY,
    Row,
    TokenPiece,
    step_of,
)
from .step import Step

ROUNDS = 32
"""Rounds of a block; the last of a turn has up to twice as many less one. Longer ones would hardly be smaller, and take
longer to read one round of."""
MAX_BYTES = 4 * 2**20
"""Most bytes that a block may inflate to: far more than rounds take."""
Columns = list[list[Any]]
_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def encoded(first: int, rows: Sequence[Row]) -> bytes:
    """The block of these rows of one turn, the first of which is round number ``first`` of it."""
    return zlib.compress(_as_json(columns_of(first, rows)).encode("utf-8", "replace"))


def columns_of(first: int, rows: Sequence[Row]) -> list[Any]:
    """What a block holds, before it is deflated. The columns of rows stand in it, not the rows: what is alike is then
    side by side, and deflates to fewer bytes."""
    pieces: Iterable[TokenPiece] = rows[0].pieces
    values: Iterable[Sequence[Any]] = [rows[0].values]
    if len(rows) > 1:
        pieces = table = dict[TokenPiece, int]()
        values = [row.renumbered(table) for row in rows]
    values = list(values)
    columns = list(map(list, zip(*map(_less_expected, values), strict=True)))
    for number in (INDEX, TIME, CONTEXT) if len(rows) > 1 else ():
        columns[number] = list(map(sub, columns[number], [0, *(row[number] for row in values[:-1])]))
    for column in columns:
        while len(column) > 1 and column[-1] == column[-2]:
            column.pop()
    ids, texts = zip(*pieces, strict=True) if pieces else ((), ())
    return [rows[0].turn, first, len(rows), ids, texts, *columns]


def _less_expected(values: Sequence[Any]) -> list[Any]:
    """A row's values without what is to be expected: a round begins where the one before it ended, lasts as long as its
    draft and its pass, adds to the context what it emits, and emits what was accepted."""
    some = list(values)
    accepted = some[KEPT][0] if isinstance(some[KEPT], list) else some[KEPT]
    some[TIME] -= some[TOTAL]
    some[CONTEXT] -= accepted + len(some[OWN]) // 3
    some[TOTAL] -= (some[DRAFT] or 0) + (some[VERIFY] or 0)
    some[ACCEPTED] -= accepted
    return some


def _add(columns: Columns) -> None:
    """Turns differences back into values: the inverse of ``_less_expected``, and of less what stands before."""
    accepted, emitted, passes = _expected(columns)
    columns[ACCEPTED] = list(map(add, columns[ACCEPTED], accepted))
    columns[TOTAL] = list(map(add, columns[TOTAL], passes))
    for column, expected in ((TIME, columns[TOTAL]), (CONTEXT, emitted), (INDEX, [0] * len(accepted))):
        columns[column] = list(accumulate(map(add, columns[column], expected)))


def _expected(columns: Columns) -> tuple[list[int], list[int], list[int]]:
    """Lists with an entry per step: tokens kept of its draft, all tokens emitted, and microseconds of its passes."""
    accepted = [each[0] if isinstance(each, list) else each for each in columns[KEPT]]
    emitted = [count + len(own) // 3 for count, own in zip(accepted, columns[OWN], strict=True)]
    passes = [(draft or 0) + (verify or 0) for draft, verify in zip(columns[DRAFT], columns[VERIFY], strict=True)]
    return accepted, emitted, passes


@dataclass(frozen=True, slots=True)
class Block:
    """A block, inflated. Its rows become steps when they are asked for."""

    turn: int
    first: int
    """The number of its first round in the turn."""
    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def step(self, index: int) -> Step:
        """The step at ``index`` of the block. Raises :class:`RecordError` for a damaged row."""
        return step_of(self.rows[index])

    def steps(self, start: int = 0) -> Iterator[Step]:
        return map(self.step, range(start, len(self.rows)))

    def texts(self) -> tuple[str, str]:
        """What its rounds add to the answer, and to the thought. Raises :class:`RecordError` for a damaged row."""
        by_channel: dict[int, list[str]] = {channel: [] for channel in range(len(CHANNELS))}
        try:
            for _, pieces, values in self.rows:
                count, channel = values[KEPT] if isinstance(values[KEPT], list) else (values[KEPT], 0)
                by_channel[channel] += [pieces[ref][1] or "" for ref in values[DRAFTED][:count]]
                for ref, kind, _ in zip(*[iter(values[OWN])] * 3, strict=True):
                    by_channel[kind % len(CHANNELS)].append(pieces[ref][1] or "")
        except (TypeError, ValueError, IndexError, KeyError) as error:
            raise RecordError("a row is not a step") from error
        return "".join(by_channel[CHANNELS.index("answer")]), "".join(by_channel[CHANNELS.index("thought")])


def decoded(data: bytes) -> Block:
    """The inverse of :func:`encoded`. Raises :class:`RecordError` for what is no block."""
    inflate = zlib.decompressobj()
    try:
        content = json.loads(inflate.decompress(data, MAX_BYTES))
    except (zlib.error, ValueError, RecursionError) as error:
        raise RecordError("a block of rounds is damaged") from error
    if not inflate.eof or inflate.unconsumed_tail or inflate.unused_data:
        raise RecordError("a block of rounds is not what such blocks are")
    return block_of(content)


def block_of(content: Any) -> Block:
    """The inverse of :func:`columns_of`. Raises :class:`RecordError` for what is no block."""
    try:
        turn, first, count, ids, texts, *columns = content
        if not 0 < count < 2 * ROUNDS:
            raise RecordError("a block of rounds has none, or too many")
        columns = [[*column, *column[-1:] * (count - len(column))] for column in columns]
        _add(columns)
        pieces = tuple(map(_piece, zip(ids, texts, strict=True)))
        rows = tuple(Row(turn, pieces, values) for values in zip(*columns, strict=True))
    except (ValueError, TypeError, IndexError) as error:
        raise RecordError("a block of rounds is damaged") from error
    if not (len(columns) == COLUMNS and len(rows) == count and _is_number(turn) and _is_number(first)):
        raise RecordError("a block of rounds is not what such blocks are")
    return Block(turn, first, rows)


def _piece(piece: TokenPiece) -> TokenPiece:
    token, text = piece
    if not (token is None or _is_number(token)) or not (text is None or isinstance(text, str)):
        raise RecordError("a token is no token")
    return piece


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_NUMBER
