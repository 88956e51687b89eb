"""One step in few bytes: the packing that histories in memory and trace files share. FORMAT.md describes every byte.

What can be told from the step before, or from the rest of the step, is not written. Tokens are references into a table
of (id, text) pairs that grows as tokens are first met. Probabilities are kept in steps of 1/1000 and times in
microseconds, which is what the engine hands out, so unpacking gives back equal events.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import get_args

from engine.commands import MAX_TEMPERATURE
from engine.events import MICROSECONDS, PROBABILITY_STEPS, Channel, DraftToken, EmittedToken, Step, Verdict, WidthChoice

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
CHANNELS: tuple[Channel, ...] = get_args(Channel)

PLACE, SETTINGS, COUNTS, CHOICE = 4, 8, 16, 32
"""Bits of a step's first byte: these fields are not what the step before lets expect, and follow. The two lowest bits
are the channel of the tokens that were emitted as drafted."""

MAX_NUMBER = 2**53
"""Numbers beyond this don't survive a trip through JSON readers, and no honest trace holds one."""
SECOND = 1000 * MICROSECONDS
"""Microseconds of a second; ``MICROSECONDS`` are those of a millisecond."""

Piece = tuple[int, str]
"""A token's id and the text it stands for here. Half-finished characters give one id several texts."""


class PackingError(ValueError):
    """These bytes are not a packed step."""


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

    def pack(self, step: Step) -> bytes:
        place, out = self.place, bytearray(1)
        plain = _emitted_as_drafted(step)
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
        if step.num_accepted != plain or step.verify_width != len(step.draft) + 1:
            head |= COUNTS
            put_number(out, step.num_accepted)
            put_number(out, step.verify_width)
        if step.choice is not None:
            head |= CHOICE
            put_number(out, _doubt(step.choice.chance))
            put_number(out, _whole(step.choice.cost_ms, MICROSECONDS))
            put_number(out, _whole(step.choice.tok_s, 1))
        out[0] = head
        self._put_times(out, step)
        self._put_draft(out, step.draft)
        self._put_emitted(out, step, plain)
        place.turn, place.index, place.context = step.turn, step.index, step.context_length
        place.block_size, place.temperature = step.block_size, step.temperature
        return bytes(out)

    def _put_times(self, out: bytearray, step: Step) -> None:
        draft, verify = _whole(step.draft_ms, MICROSECONDS), _whole(step.verify_ms, MICROSECONDS)
        total, time = _whole(step.total_ms, MICROSECONDS), _whole(step.time, SECOND)
        put_number(out, draft)
        put_number(out, verify)
        _put_signed(out, total - draft - verify)
        _put_signed(out, time - self.place.time_us - total)
        self.place.time_us = time

    def _put_draft(self, out: bytearray, draft: tuple[DraftToken, ...]) -> None:
        put_number(out, len(draft))
        for token in draft:
            self._put_piece(out, (token.id, token.text))
        out += b"".join([_CHANCES[_doubt(token.probability)] for token in draft])
        judged = [token.target_probability for token in draft]
        while judged and judged[-1] is None:
            judged.pop()
        put_number(out, len(judged))
        out += b"".join([_CHANCES[0 if given is None else 1 + _doubt(given)] for given in judged])

    def _put_emitted(self, out: bytearray, step: Step, plain: int) -> None:
        own = step.emitted[plain:]
        put_number(out, plain)
        put_number(out, len(own))
        for token in own:
            out.append(VERDICTS.index(token.verdict) | CHANNELS.index(token.channel) << 2)
            self._put_piece(out, (token.id, token.text))
            put_number(out, _doubt(token.probability))

    def _put_piece(self, out: bytearray, piece: Piece) -> None:
        reference = self._references.get(piece)
        if reference is not None:
            put_number(out, reference)
            return
        text = piece[1].encode("utf-8", "replace")
        put_number(out, self.place.pieces)
        put_number(out, piece[0])
        put_number(out, len(text))
        out += text
        self._references[piece] = self.place.pieces
        if self._pieces is not None:
            self._pieces.append(piece)
        self.place.pieces += 1


class Unpacker:
    """Unpacks steps, in order or, given the :class:`Place` before a step, anywhere that was unpacked before."""

    def __init__(self, pieces: list[Piece]) -> None:
        """``pieces``: the table, which grows as steps are unpacked."""
        self.place = Place()
        self._pieces = pieces
        self._data = b""
        self._offset = 0
        self._plain = 0

    def unpack(self, data: bytes) -> Step:
        """Raises :class:`PackingError` for anything but exactly one packed step."""
        self._data, self._offset = data, 0
        try:
            step = self._step()
        except (IndexError, struct.error, UnicodeDecodeError) as error:
            raise PackingError("a step ends early, or holds what no step holds") from error
        if self._offset != len(data):
            raise PackingError("a step has more bytes than it uses")
        return step

    def _step(self) -> Step:
        place, head = self.place, self._byte()
        if head & PLACE:
            place.turn, place.index, context = self._number(), self._number(), self._number()
        else:
            place.index += 1
        if head & SETTINGS:
            place.block_size = self._number()
            place.temperature = self._temperature()
        counts = (self._number(), self._number()) if head & COUNTS else None
        choice = self._choice() if head & CHOICE else None
        draft_us, verify_us = self._number(), self._number()
        total_us = self._checked(draft_us + verify_us + self._signed())
        place.time_us = self._checked(place.time_us + total_us + self._signed())
        draft = self._draft()
        emitted = self._emitted(draft, CHANNELS[head & 3])
        place.context = context if head & PLACE else self._checked(place.context + len(emitted))
        accepted, width = counts or (self._plain, len(draft) + 1)
        return Step(
            turn=place.turn,
            index=place.index,
            time=place.time_us / SECOND,
            draft=draft,
            num_accepted=accepted,
            emitted=emitted,
            verify_width=width,
            draft_ms=draft_us / MICROSECONDS,
            verify_ms=verify_us / MICROSECONDS,
            total_ms=total_us / MICROSECONDS,
            context_length=place.context,
            block_size=place.block_size,
            temperature=place.temperature,
            choice=choice,
        )

    def _choice(self) -> WidthChoice:
        return WidthChoice(_belief(self._number()), self._number() / MICROSECONDS, float(self._number()))

    def _draft(self) -> tuple[DraftToken, ...]:
        pieces = [self._piece() for _ in range(self._count())]
        doubts = [self._number() for _ in pieces]
        judged = [self._number() for _ in range(self._count())]
        if len(judged) > len(pieces):
            raise PackingError("a step judges more tokens than were drafted")
        judged += [0] * (len(pieces) - len(judged))
        return tuple(
            DraftToken(piece[0], piece[1], _belief(doubt), _belief(given - 1) if given else None)
            for piece, doubt, given in zip(pieces, doubts, judged, strict=True)
        )

    def _emitted(self, draft: tuple[DraftToken, ...], channel: Channel) -> tuple[EmittedToken, ...]:
        plain = self._plain = self._number()
        if plain > len(draft):
            raise PackingError("a step keeps more tokens than were drafted")
        kept = [
            EmittedToken(token.id, token.text, "accepted", channel, _given(token.target_probability))
            for token in draft[:plain]
        ]
        return (*kept, *(self._own() for _ in range(self._count())))

    def _own(self) -> EmittedToken:
        kind, piece = self._byte(), self._piece()
        return EmittedToken(*piece, VERDICTS[kind & 3], CHANNELS[kind >> 2], _belief(self._number()))

    def _piece(self) -> Piece:
        reference = self._number()
        if reference < self.place.pieces:
            return self._pieces[reference]
        if reference > self.place.pieces:
            raise PackingError("a step refers to a token that was never described")
        token, size = self._number(), self._number()
        text = self._take(size).decode("utf-8")
        if reference == len(self._pieces):
            self._pieces.append((token, text))
        self.place.pieces += 1
        return self._pieces[reference]

    def _temperature(self) -> float:
        (value,) = struct.unpack("<d", self._take(8))
        if not 0 <= value <= MAX_TEMPERATURE:
            raise PackingError("a temperature is out of range")
        return float(value)

    def _byte(self) -> int:
        self._offset += 1
        return self._data[self._offset - 1]

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self._offset:
            raise PackingError("a step ends early")
        self._offset += size
        return self._data[self._offset - size : self._offset]

    def _number(self) -> int:
        value = self._data[self._offset]
        self._offset += 1
        if value < 128:
            return value
        value &= 127
        for shift in range(7, 63, 7):
            byte = self._data[self._offset]
            self._offset += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return self._checked(value)
        raise PackingError("a number is longer than numbers are")

    def _signed(self) -> int:
        return signed(self._number())

    def _count(self) -> int:
        """A number of things that take a byte each at least, so that no list can be longer than the data."""
        count = self._number()
        if count > len(self._data) - self._offset:
            raise PackingError("a list is longer than the step")
        return count

    @staticmethod
    def _checked(value: int) -> int:
        if not 0 <= value <= MAX_NUMBER:
            raise PackingError("a number is out of range")
        return value


def _emitted_as_drafted(step: Step) -> int:
    """How many emitted tokens, from the first on, are exactly what their draft says."""
    channel = step.emitted[0].channel if step.emitted else "answer"
    for count, (kept, drafted) in enumerate(zip(step.emitted, step.draft, strict=False)):
        if (kept.id, kept.text, kept.verdict, kept.channel, kept.probability) != (
            drafted.id, drafted.text, "accepted", channel, drafted.target_probability
        ):  # fmt: skip
            return count
    return min(len(step.emitted), len(step.draft))


def put_number(out: bytearray, number: int) -> None:
    """Appends a number: seven bits a byte, lowest first; the eighth says that more follow."""
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def number(value: int) -> bytes:
    """A number alone."""
    out = bytearray()
    put_number(out, value)
    return bytes(out)


_CHANCES = tuple(number(value) for value in range(PROBABILITY_STEPS + 2))
"""What a chance, or one more, is packed as. A step has dozens: looking them up is faster than putting them together."""


def _put_signed(out: bytearray, number: int) -> None:
    put_number(out, unsigned(number))


def unsigned(number: int) -> int:
    """A number that may be negative as one that is not: small ones stay small."""
    return number * 2 if number >= 0 else -number * 2 - 1


def signed(number: int) -> int:
    """The inverse of :func:`unsigned`."""
    return number >> 1 if number % 2 == 0 else -(number >> 1) - 1


def microseconds(seconds: float) -> int:
    """In whole microseconds; what is no number, or out of range, is 0."""
    return _whole(seconds, SECOND)


def _whole(value: float, steps: int) -> int:
    """``value`` in whole steps; what is no number, or out of range, is 0: a record must not stop an answer."""
    return round(value * steps) if 0 <= value * steps <= MAX_NUMBER else 0


def _doubt(probability: float) -> int:
    """1 - probability in whole steps: small for a confident model, and small numbers are short."""
    if 0 <= probability <= 1:
        return PROBABILITY_STEPS - round(probability * PROBABILITY_STEPS)
    return 0 if probability > 1 else PROBABILITY_STEPS


def _belief(doubt: int) -> float:
    if doubt > PROBABILITY_STEPS:
        raise PackingError("a probability is below 0")
    return (PROBABILITY_STEPS - doubt) / PROBABILITY_STEPS


def _given(probability: float | None) -> float:
    if probability is None:
        raise PackingError("an accepted token has no probability")
    return probability
