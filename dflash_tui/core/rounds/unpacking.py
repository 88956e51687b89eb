"""Packed steps back into events. :mod:`.packing` makes them, and FORMAT.md describes every byte."""

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
    accepted_in,
)

from .numbers import MAX_NUMBER, SECOND, PackingError, belief, signed
from .packing import (
    CHANNELS,
    CHOICE,
    COUNTS,
    HAS_ID,
    HAS_TEXT,
    MOST_CHOICES,
    NEW_CHOICE,
    PARTIAL,
    PLACE,
    PROVISIONAL,
    SETTINGS,
    SOURCED,
    SOURCES,
    TREE,
    UNKNOWN,
    VERDICTS,
    Piece,
    Place,
)


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
        match: Match | None = None
        if head & SOURCED:
            draft = tuple(replace(token, source=self._source()) for token in draft)
            tree = tuple(replace(token, source=self._source()) for token in tree)
            match = self._match()
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
            provisional=bool(head & PROVISIONAL),
            match=match,
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

    def _source(self) -> Source | None:
        number = self._number()
        if number >= len(SOURCES):
            raise PackingError("nobody drafts who is not known")
        return SOURCES[number]

    def _match(self) -> Match | None:
        length, distance = self._number(), self._number()
        return Match(length, distance) if length else None

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
        verdict = VERDICTS[4 if kind & UNKNOWN else kind & 3]
        return EmittedToken(token, text, verdict, CHANNELS[(kind & ~UNKNOWN) >> 2], self._chance(self._number()))

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


def _holds_together(step: Step) -> bool:
    """A tree was verified as a whole, and what was accepted of it is a path in it."""
    try:
        return step.verify_width == len(step.tree) + 1 and len(accepted_in(step)) == step.num_accepted
    except KeyError:
        return False
