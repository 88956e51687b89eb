"""One step in few bytes, for histories and trace files (FORMAT.md). What follows from other parts or the step before
isn't written; tokens refer to a growing table of (id, text). Probabilities in 1/1000 and microseconds are what the
engine hands out, so events come back equal."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import get_args

from engine.events import (
    MICROSECONDS,
    Channel,
    DraftToken,
    EmittedToken,
    Source,
    Step,
    TreeToken,
    Verdict,
)

from .numbers import (
    CHANCES,
    SECOND,
    doubt,
    number,
    put_number,
    put_signed,
    whole,
)

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
CHANNELS: tuple[Channel, ...] = get_args(Channel)
SOURCES: tuple[Source | None, ...] = (None, *get_args(Source))

PLACE, SETTINGS, COUNTS, CHOICE, TREE, PARTIAL, PROVISIONAL, SOURCED = 4, 8, 16, 32, 64, 128, 256, 512
"""Bits of a step's head: these fields are not what the step before lets expect, and follow. Of ``PARTIAL`` steps not
everything is known: what may be unknown is written one higher, with 0 for that. The two lowest bits are the channel of
the tokens that were emitted as drafted."""
UNKNOWN = 16
"""Bit of what an emitted token is: nobody knows its verdict."""
HAS_ID, HAS_TEXT = 1, 2
"""Bits of what a partial step knows of a piece that it adds to the table."""
NEW_CHOICE = 1
"""Bit of a choice in a tree: what it is follows, for none before it tells that."""
MOST_CHOICES = 256
"""Of a position. No drafter is asked for so many."""

Piece = tuple[int | None, str | None]
"""A token's id and its text here, or None. Half-finished characters give one id several texts."""


@dataclass(slots=True)
class Place:
    """What one step passes on to the next: the state of packer and unpacker."""

    turn: int = 0
    index: int = -1
    context: int = 0
    time_us: int = 0
    block_size: int = 0
    temperature: float = 0.0
    pieces: int = 0
    """Entries of the piece table so far."""

    def copy(self) -> Place:
        return replace(self)


class Packer:
    """Packs steps, in order."""

    def __init__(self, pieces: list[Piece] | None = None, place: Place | None = None) -> None:
        """``pieces``: a table to fill with the tokens that are met, for whoever wants to unpack. It holds the tokens
        met so far where packing goes on at ``place``."""
        self.place = place or Place()
        self._pieces = pieces
        self._references = {piece: reference for reference, piece in enumerate(pieces or ())}
        self._partial = False
        """Of the step at hand."""

    def back_to(self, place: Place) -> None:
        """Forget the steps that were packed since then: others take their place."""
        while len(self._references) > place.pieces:
            self._references.popitem()
        if self._pieces is not None:
            del self._pieces[place.pieces :]
        self.place = place.copy()

    def pack(self, step: Step) -> bytes:
        self._partial = is_partial(step)
        place, out = self.place, bytearray()
        kept = _kept_of_tree(step) if step.tree else []
        plain = len(kept) if step.tree else _emitted_as_drafted(step)
        head = CHANNELS.index(step.emitted[0].channel) if plain else 0
        if (step.turn, step.index, step.context_length) != (
            place.turn, place.index + 1, place.context + len(step.emitted)
        ):  # fmt: skip
            head |= PLACE
            put_number(out, step.turn)
            put_number(out, step.index)
            put_number(out, step.context_length)
        if step.block_size != place.block_size or step.temperature != place.temperature:
            head |= SETTINGS
            put_number(out, step.block_size)
            out += struct.pack("<d", step.temperature)
        if step.num_accepted != plain or step.verify_width != len(step.tree or step.draft) + 1:
            head |= COUNTS
            put_number(out, step.num_accepted)
            put_number(out, step.verify_width)
        if step.choice is not None:
            head |= CHOICE
            put_number(out, doubt(step.choice.chance))
            put_number(out, whole(step.choice.cost_ms, MICROSECONDS))
            put_number(out, whole(step.choice.tok_s, 1))
        head |= TREE * bool(step.tree) | PARTIAL * self._partial | PROVISIONAL * step.provisional
        head |= SOURCED * is_sourced(step)
        out[:0] = number(head)
        self._put_times(out, step)
        self._put_draft(out, step.draft)
        if step.tree:
            self._put_tree(out, step)
        put_number(out, plain)
        for row, token in zip(kept, step.emitted, strict=False):
            put_number(out, choice := step.tree[row - 1].choice)
            if choice:
                put_number(out, self._chance(token.probability))
        self._put_own(out, step.emitted[plain:])
        if head & SOURCED:
            _put_sources(out, step)
        place.turn, place.index, place.context = step.turn, step.index, step.context_length
        place.block_size, place.temperature = step.block_size, step.temperature
        return bytes(out)

    def _put_times(self, out: bytearray, step: Step) -> None:
        total, time = whole(step.total_ms, MICROSECONDS), whole(step.time, SECOND)
        rest = total
        for part in (step.draft_ms, step.verify_ms):
            spent = whole(part or 0.0, MICROSECONDS)
            put_number(out, 0 if part is None else spent + self._partial)
            rest -= spent
        put_signed(out, rest)
        put_signed(out, time - self.place.time_us - total)
        self.place.time_us = time

    def _put_draft(self, out: bytearray, draft: tuple[DraftToken, ...]) -> None:
        put_number(out, len(draft))
        for token in draft:
            self._put_piece(out, (token.id, token.text))
        out += b"".join([CHANCES[self._chance(token.probability)] for token in draft])
        judged = [token.target_probability for token in draft]
        while judged and judged[-1] is None:
            judged.pop()
        put_number(out, len(judged))
        out += b"".join([CHANCES[0 if given is None else 1 + doubt(given)] for given in judged])

    def _put_tree(self, out: bytearray, step: Step) -> None:
        """Of a choice that stands in several places, and of first choices, the step says what they are once."""
        told = {(depth, 0): _described(token) for depth, token in enumerate(step.draft, 1)}
        put_number(out, len(step.tree))
        for token in step.tree:
            place, what = (token.depth, token.choice), _described(token)
            new = told.get(place) != what
            put_number(out, token.parent)
            put_number(out, token.choice << 1 | new)
            if new:
                self._put_piece(out, (token.id, token.text))
                put_number(out, self._chance(token.probability))
                told[place] = what

    def _put_own(self, out: bytearray, own: tuple[EmittedToken, ...]) -> None:
        put_number(out, len(own))
        for token in own:
            unknown = token.verdict == "unknown"
            out.append((UNKNOWN if unknown else VERDICTS.index(token.verdict)) | CHANNELS.index(token.channel) << 2)
            self._put_piece(out, (token.id, token.text))
            put_number(out, self._chance(token.probability))

    def _chance(self, probability: float | None) -> int:
        """0 where it is not known, which only partial steps say."""
        return 0 if probability is None else doubt(probability) + self._partial

    def _put_piece(self, out: bytearray, piece: Piece) -> None:
        reference = self._references.get(piece)
        if reference is not None:
            put_number(out, reference)
            return
        token, text = piece
        put_number(out, self.place.pieces)
        if self._partial:
            put_number(out, HAS_ID * (token is not None) | HAS_TEXT * (text is not None))
        if token is not None:
            put_number(out, token)
        if text is not None:
            data = text.encode("utf-8", "replace")
            put_number(out, len(data))
            out += data
        self._references[piece] = self.place.pieces
        if self._pieces is not None:
            self._pieces.append(piece)
        self.place.pieces += 1


def is_partial(step: Step) -> bool:
    """Something of the step is not known."""
    if step.draft_ms is None or step.verify_ms is None:
        return True
    if any(token.id is None or token.probability is None for token in step.emitted):
        return True
    return any(token.id is None or token.text is None or token.probability is None for token in step.draft)


def is_unsure(step: Step) -> bool:
    """It is a guess, or holds a token whose verdict nobody knows."""
    return step.provisional or any(token.verdict == "unknown" for token in step.emitted)


def is_sourced(step: Step) -> bool:
    """It says where something was looked up, or who guessed a token."""
    return step.match is not None or any(_sources(step))


def _sources(step: Step) -> list[Source | None]:
    """Of the draft, then of the tree."""
    return [*(token.source for token in step.draft), *(token.source for token in step.tree)]


def _put_sources(out: bytearray, step: Step) -> None:
    for source in _sources(step):
        put_number(out, SOURCES.index(source))
    length, distance = (0, 0) if step.match is None else (step.match.length, step.match.distance)
    put_number(out, length)
    put_number(out, distance)


def _described(token: DraftToken | TreeToken) -> tuple[int | None, str | None, int | None]:
    return token.id, token.text, None if token.probability is None else doubt(token.probability)


def _emitted_as_drafted(step: Step) -> int:
    """How many emitted tokens, from the first on, are exactly what their draft says."""
    channel = step.emitted[0].channel if step.emitted else "answer"
    for count, (kept, drafted) in enumerate(zip(step.emitted, step.draft, strict=False)):
        if (kept.id, kept.text, kept.verdict, kept.channel, kept.probability) != (
            drafted.id, drafted.text, "accepted", channel, drafted.target_probability
        ):  # fmt: skip
            return count
    return min(len(step.emitted), len(step.draft))


def _kept_of_tree(step: Step) -> list[int]:
    """Which tokens of a step's tree, counted from 1, the first emitted ones are exactly; none without a tree."""
    rows: dict[tuple[int, int | None, str], int] = {
        (token.parent, token.id, token.text): row for row, token in enumerate(step.tree, 1)
    }
    channel = step.emitted[0].channel if step.emitted else "answer"
    path: list[int] = []
    for token in step.emitted:
        row = rows.get((path[-1] if path else 0, token.id, token.text))
        if row is None or (token.verdict, token.channel) != ("accepted", channel):
            break
        known = step.tree[row - 1]
        if known.choice == 0 and step.draft[known.depth - 1].target_probability != token.probability:
            break
        path.append(row)
    return path
