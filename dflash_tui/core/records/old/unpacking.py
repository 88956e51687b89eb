"""Packed steps of traces 3 to 7, and of sessions of that time, back into events. What follows from the step before was
not written; tokens refer to a growing table of (id, text). FORMAT.md describes every byte."""

from __future__ import annotations

import struct
from dataclasses import replace

from engine.commands import MAX_TEMPERATURE
from engine.events import (
    MICROSECONDS,
    Channel,
    DraftToken,
    EmittedToken,
    Match,
    Source,
    Step,
    TreeToken,
    WidthChoice,
)

from ..numbers import MAX_NUMBER, SECOND, RecordError, belief
from ..rows import CHANNELS, SOURCES, VERDICTS, Piece, holds_together

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
"""Most choices of a position."""


class Unpacker:
    """Unpacks the steps of a file, which must come in their order."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        """The table of tokens, which grows as steps are unpacked."""
        self._turn, self._index, self._context, self._time_us = 0, -1, 0, 0
        """The turn, the number, the context's length and the time in microseconds of the step before."""
        self._block_size, self._temperature = 0, 0.0
        self._data = b""
        self._offset = 0
        self._partial = False
        """Whether the step that is being read is a partial one."""

    def unpack(self, data: bytes) -> Step:
        """Raises :class:`RecordError` for anything but exactly one packed step."""
        self._data, self._offset = data, 0
        try:
            step = self._step()
        except (IndexError, struct.error, UnicodeDecodeError) as error:
            raise RecordError("a step ends early, or holds what no step holds") from error
        if self._offset != len(data):
            raise RecordError("a step has more bytes than it uses")
        return step

    def _step(self) -> Step:
        head = self._number()
        self._partial = bool(head & PARTIAL)
        if head & PLACE:
            self._turn, self._index, context = self._number(), self._number(), self._number()
        else:
            self._index += 1
        if head & SETTINGS:
            self._block_size = self._number()
            self._temperature = self._read_temperature()
        counts = (self._number(), self._number()) if head & COUNTS else None
        choice = self._choice() if head & CHOICE else None
        draft_us, verify_us = self._part(), self._part()
        total_us = self._checked((draft_us or 0) + (verify_us or 0) + self._signed())
        self._time_us = self._checked(self._time_us + total_us + self._signed())
        draft = self._draft()
        tree = self._tree(draft) if head & TREE else ()
        kept = self._kept_of_tree(draft, tree, CHANNELS[head & 3]) if tree else self._kept(draft, CHANNELS[head & 3])
        emitted = (*kept, *(self._own() for _ in range(self._count())))
        match: Match | None = None
        if head & SOURCED:
            draft = tuple(replace(token, source=self._source()) for token in draft)
            tree = tuple(replace(token, source=self._source()) for token in tree)
            match = self._match()
        self._context = context if head & PLACE else self._checked(self._context + len(emitted))
        accepted, width = counts or (len(kept), len(tree or draft) + 1)
        step = Step(
            turn=self._turn,
            index=self._index,
            time=self._time_us / SECOND,
            draft=draft,
            num_accepted=accepted,
            emitted=emitted,
            verify_width=width,
            draft_ms=None if draft_us is None else draft_us / MICROSECONDS,
            verify_ms=None if verify_us is None else verify_us / MICROSECONDS,
            total_ms=total_us / MICROSECONDS,
            context_length=self._context,
            block_size=self._block_size,
            temperature=self._temperature,
            choice=choice,
            tree=tree,
            match=match,
        )
        if tree and not holds_together(step):
            raise RecordError("a step's tree is not what was accepted of it")
        return step

    def _part(self) -> int | None:
        """Reads the microseconds of a part of the round; None where a partial step doesn't know them."""
        spent = self._number()
        return spent if not self._partial else spent - 1 if spent else None

    def _chance(self, number: int) -> float | None:
        """A probability that may be unknown."""
        return belief(number) if not self._partial else belief(number - 1) if number else None

    def _choice(self) -> WidthChoice:
        return WidthChoice(belief(self._number()), self._number() / MICROSECONDS, float(self._number()))

    def _source(self) -> Source | None:
        number = self._number()
        if number >= len(SOURCES):
            raise RecordError("nobody drafts who is not known")
        return SOURCES[number]

    def _match(self) -> Match | None:
        length, distance = self._number(), self._number()
        return Match(length, distance) if length else None

    def _draft(self) -> tuple[DraftToken, ...]:
        pieces = [self._piece() for _ in range(self._count())]
        doubts = [self._number() for _ in pieces]
        judged = [self._number() for _ in range(self._count())]
        if len(judged) > len(pieces):
            raise RecordError("a step judges more tokens than were drafted")
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
                raise RecordError("a token of a tree stands behind one that comes later")
            depth, choice = 1 + (tree[parent - 1].depth if parent else 0), branch >> 1
            if depth > len(draft) or choice >= MOST_CHOICES:
                raise RecordError("a tree is deeper than the draft, or wider than drafts are")
            if branch & NEW_CHOICE:
                told[depth, choice] = (*self._piece(), self._chance(self._number()))
            elif (depth, choice) not in told:
                raise RecordError("a tree refers to a choice that was never described")
            token, text, probability = told[depth, choice]
            if token is None or text is None or probability is None:
                raise RecordError("a token of a tree is not known")
            found = TreeToken(parent, depth, choice, token, text, probability)
            here = {("choice", parent, choice), ("id", parent, found.id)}
            if here & children:
                raise RecordError("a tree has the same token twice in one place")
            children |= here
            tree.append(found)
        return tuple(tree)

    def _kept(self, draft: tuple[DraftToken, ...], channel: Channel) -> list[EmittedToken]:
        count = self._number()
        if count > len(draft):
            raise RecordError("a step keeps more tokens than were drafted")
        return [self._as_drafted(token, token.target_probability, channel) for token in draft[:count]]

    def _as_drafted(self, token: DraftToken | TreeToken, given: float | None, channel: Channel) -> EmittedToken:
        if token.text is None or (given is None and not self._partial):
            raise RecordError("an accepted token has no text, or no probability")
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
                raise RecordError("a step keeps a token that is not in its tree")
            row = rows[row, choice]
            token = tree[row - 1]
            given = self._chance(self._number()) if choice else draft[token.depth - 1].target_probability
            kept.append(self._as_drafted(token, given, channel))
        return kept

    def _own(self) -> EmittedToken:
        kind, (token, text) = self._byte(), self._piece()
        if text is None:
            raise RecordError("a token of the answer has no text")
        verdict = VERDICTS[4 if kind & UNKNOWN else kind & 3]
        return EmittedToken(token, text, verdict, CHANNELS[(kind & ~UNKNOWN) >> 2], self._chance(self._number()))

    def _piece(self) -> Piece:
        reference = self._number()
        if reference < len(self.pieces):
            return self.pieces[reference]
        if reference > len(self.pieces):
            raise RecordError("a step refers to a token that was never described")
        known = self._number() if self._partial else HAS_ID | HAS_TEXT
        token = self._number() if known & HAS_ID else None
        text = self._take(self._number()).decode("utf-8") if known & HAS_TEXT else None
        self.pieces.append((token, text))
        return token, text

    def _read_temperature(self) -> float:
        (value,) = struct.unpack("<d", self._take(8))
        if not 0 <= value <= MAX_TEMPERATURE:
            raise RecordError("a temperature is out of range")
        return float(value)

    def _byte(self) -> int:
        self._offset += 1
        return self._data[self._offset - 1]

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self._offset:
            raise RecordError("a step ends early")
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
        raise RecordError("a number is longer than numbers are")

    def _signed(self) -> int:
        number = self._number()
        return number >> 1 if number % 2 == 0 else -(number >> 1) - 1

    def _count(self) -> int:
        """A number of things that take a byte each at least, so that no list can be longer than the data."""
        count = self._number()
        if count > len(self._data) - self._offset:
            raise RecordError("a list is longer than the step")
        return count

    @staticmethod
    def _checked(value: int) -> int:
        if not 0 <= value <= MAX_NUMBER:
            raise RecordError("a number is out of range")
        return value
