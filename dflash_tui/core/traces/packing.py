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
from engine.events import (
    MICROSECONDS,
    Channel,
    DraftToken,
    EmittedToken,
    Step,
    TreeToken,
    Verdict,
    WidthChoice,
    accepted_in,
)

from .numbers import (
    CHANCES,
    MAX_NUMBER,
    SECOND,
    PackingError,
    belief,
    doubt,
    number,
    put_number,
    put_signed,
    signed,
    whole,
)

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
CHANNELS: tuple[Channel, ...] = get_args(Channel)

PLACE, SETTINGS, COUNTS, CHOICE, TREE, PARTIAL = 4, 8, 16, 32, 64, 128
"""Bits of a step's head: these fields are not what the step before lets expect, and follow. Of ``PARTIAL`` steps not
everything is known: what may be unknown is written one higher, with 0 for that. The two lowest bits are the channel of
the tokens that were emitted as drafted."""
HAS_ID, HAS_TEXT = 1, 2
"""Bits of what a partial step knows of a piece that it adds to the table."""
NEW_CHOICE = 1
"""Bit of a choice in a tree: what it is follows, for none before it tells that."""
MOST_CHOICES = 256
"""Of a position. No drafter is asked for so many."""

Piece = tuple[int | None, str | None]
"""A token's id and the text it stands for here; None for what is not known. Half-finished characters give one id
several texts."""


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

    def pack(self, step: Step) -> bytes:
        self._partial = is_partial(step)
        place, out = self.place, bytearray(1 + self._partial)
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
        head |= TREE * bool(step.tree) | PARTIAL * self._partial
        out[: 1 + self._partial] = number(head)
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
            out.append(VERDICTS.index(token.verdict) | CHANNELS.index(token.channel) << 2)
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


class Unpacker:
    """Unpacks steps, in order or, given the :class:`Place` before a step, anywhere that was unpacked before."""

    def __init__(self, pieces: list[Piece]) -> None:
        """``pieces``: the table, which grows as steps are unpacked."""
        self.place = Place()
        self._pieces = pieces
        self._data = b""
        self._offset = 0
        self._partial = False
        """Of the step at hand."""

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
        place, head = self.place, self._number()
        self._partial = bool(head & PARTIAL)
        if head & PLACE:
            place.turn, place.index, context = self._number(), self._number(), self._number()
        else:
            place.index += 1
        if head & SETTINGS:
            place.block_size = self._number()
            place.temperature = self._temperature()
        counts = (self._number(), self._number()) if head & COUNTS else None
        choice = self._choice() if head & CHOICE else None
        draft_us, verify_us = self._part(), self._part()
        total_us = self._checked((draft_us or 0) + (verify_us or 0) + self._signed())
        place.time_us = self._checked(place.time_us + total_us + self._signed())
        draft = self._draft()
        tree = self._tree(draft) if head & TREE else ()
        kept = self._kept_of_tree(draft, tree, CHANNELS[head & 3]) if tree else self._kept(draft, CHANNELS[head & 3])
        emitted = (*kept, *(self._own() for _ in range(self._count())))
        place.context = context if head & PLACE else self._checked(place.context + len(emitted))
        accepted, width = counts or (len(kept), len(tree or draft) + 1)
        step = Step(
            turn=place.turn,
            index=place.index,
            time=place.time_us / SECOND,
            draft=draft,
            num_accepted=accepted,
            emitted=emitted,
            verify_width=width,
            draft_ms=None if draft_us is None else draft_us / MICROSECONDS,
            verify_ms=None if verify_us is None else verify_us / MICROSECONDS,
            total_ms=total_us / MICROSECONDS,
            context_length=place.context,
            block_size=place.block_size,
            temperature=place.temperature,
            choice=choice,
            tree=tree,
        )
        if tree and not _holds_together(step):
            raise PackingError("a step's tree is not what was accepted of it")
        return step

    def _part(self) -> int | None:
        """Microseconds of a part of the round."""
        spent = self._number()
        return spent if not self._partial else spent - 1 if spent else None

    def _chance(self, number: int) -> float | None:
        """A probability that may be unknown."""
        return belief(number) if not self._partial else belief(number - 1) if number else None

    def _choice(self) -> WidthChoice:
        return WidthChoice(belief(self._number()), self._number() / MICROSECONDS, float(self._number()))

    def _draft(self) -> tuple[DraftToken, ...]:
        pieces = [self._piece() for _ in range(self._count())]
        doubts = [self._number() for _ in pieces]
        judged = [self._number() for _ in range(self._count())]
        if len(judged) > len(pieces):
            raise PackingError("a step judges more tokens than were drafted")
        judged += [0] * (len(pieces) - len(judged))
        return tuple(
            DraftToken(*piece, self._chance(unsure), belief(given - 1) if given else None)
            for piece, unsure, given in zip(pieces, doubts, judged, strict=True)
        )

    def _tree(self, draft: tuple[DraftToken, ...]) -> tuple[TreeToken, ...]:
        told = {(depth, 0): (token.id, token.text, token.probability) for depth, token in enumerate(draft, 1)}
        tree: list[TreeToken] = []
        children: set[tuple[str, int, int]] = set()
        for row in range(self._count()):
            parent, branch = self._number(), self._number()
            if parent > row:
                raise PackingError("a token of a tree stands behind one that comes later")
            depth, choice = 1 + (tree[parent - 1].depth if parent else 0), branch >> 1
            if depth > len(draft) or choice >= MOST_CHOICES:
                raise PackingError("a tree is deeper than the draft, or wider than drafts are")
            if branch & NEW_CHOICE:
                told[depth, choice] = (*self._piece(), self._chance(self._number()))
            elif (depth, choice) not in told:
                raise PackingError("a tree refers to a choice that was never described")
            token, text, probability = told[depth, choice]
            if token is None or text is None or probability is None:
                raise PackingError("a token of a tree is not known")
            found = TreeToken(parent, depth, choice, token, text, probability)
            here = {("choice", parent, choice), ("id", parent, found.id)}
            if here & children:
                raise PackingError("a tree has the same token twice in one place")
            children |= here
            tree.append(found)
        return tuple(tree)

    def _kept(self, draft: tuple[DraftToken, ...], channel: Channel) -> list[EmittedToken]:
        count = self._number()
        if count > len(draft):
            raise PackingError("a step keeps more tokens than were drafted")
        return [self._as_drafted(token, token.target_probability, channel) for token in draft[:count]]

    def _as_drafted(self, token: DraftToken | TreeToken, given: float | None, channel: Channel) -> EmittedToken:
        if token.text is None or (given is None and not self._partial):
            raise PackingError("an accepted token has no text, or no probability")
        return EmittedToken(token.id, token.text, "accepted", channel, given)

    def _kept_of_tree(
        self, draft: tuple[DraftToken, ...], tree: tuple[TreeToken, ...], channel: Channel
    ) -> list[EmittedToken]:
        rows = {(token.parent, token.choice): row for row, token in enumerate(tree, 1)}
        kept: list[EmittedToken] = []
        row = 0
        for _ in range(self._count()):
            choice = self._number()
            if (row, choice) not in rows:
                raise PackingError("a step keeps a token that is not in its tree")
            row = rows[row, choice]
            token = tree[row - 1]
            given = self._chance(self._number()) if choice else draft[token.depth - 1].target_probability
            kept.append(self._as_drafted(token, given, channel))
        return kept

    def _own(self) -> EmittedToken:
        kind, (token, text) = self._byte(), self._piece()
        if text is None:
            raise PackingError("a token of the answer has no text")
        return EmittedToken(token, text, VERDICTS[kind & 3], CHANNELS[kind >> 2], self._chance(self._number()))

    def _piece(self) -> Piece:
        reference = self._number()
        if reference < self.place.pieces:
            return self._pieces[reference]
        if reference > self.place.pieces:
            raise PackingError("a step refers to a token that was never described")
        known = self._number() if self._partial else HAS_ID | HAS_TEXT
        token = self._number() if known & HAS_ID else None
        text = self._take(self._number()).decode("utf-8") if known & HAS_TEXT else None
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


def is_partial(step: Step) -> bool:
    """Something of the step is not known."""
    if step.draft_ms is None or step.verify_ms is None:
        return True
    if any(token.id is None or token.probability is None for token in step.emitted):
        return True
    return any(token.id is None or token.text is None or token.probability is None for token in step.draft)


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


def _holds_together(step: Step) -> bool:
    """A tree was verified as a whole, and what was accepted of it is a path in it."""
    try:
        return step.verify_width == len(step.tree) + 1 and len(accepted_in(step)) == step.num_accepted
    except KeyError:
        return False
