"""The frames of steps in traces 3 to 7: coded ones of turns that have ended, and packed ones of a turn that went on."""

from __future__ import annotations

from collections.abc import Iterator

from engine.events import Step

from ..numbers import RecordError
from .range_decoder import CutShort, RangeDecoder
from .step_decoding import StepDecoder
from .unpacking import Unpacker

MAX_STEP = 64 * 2**10
"""Most bytes of a packed step."""
MAX_PIECES, MAX_PIECE_TEXT = 2**17, 2 * 2**20
"""Entries of the table of tokens, half a vocabulary; and characters of all of them together."""


class OldSteps:
    """Reads the frames of one file, in their order. Raises ``CutShort`` where a frame that is not ``whole`` ends within
    a step, and :class:`RecordError` for what no program wrote."""

    def __init__(self) -> None:
        self._coded = StepDecoder()
        self._unpacker = Unpacker()
        self._pieces_seen, self._piece_text = 0, 0

    def coded(self, content: bytes, whole: bool) -> Iterator[Step]:
        """Yields the steps of a frame that holds their number and a block of a range coder."""
        count, start = _number_at(content, 0)
        decoder = RangeDecoder(content[start:], whole)
        for _ in range(count):
            yield self._unpacked(self._coded.packed(decoder))

    def packed(self, content: bytes, whole: bool) -> Iterator[Step]:
        """Yields the steps of a frame that holds the length of each, and the step."""
        place = 0
        while place < len(content):
            size, start = _number_at(content, place)
            place = start + size
            if place > len(content):
                raise RecordError("a step ends early") if whole else CutShort
            yield self._unpacked(content[start:place])

    def _unpacked(self, packed: bytes) -> Step:
        if len(packed) > MAX_STEP:
            raise RecordError("a step is longer than steps are")
        step, pieces = self._unpacker.unpack(packed), self._unpacker.pieces
        self._piece_text += sum(len(text or "") for _, text in pieces[self._pieces_seen :])
        self._pieces_seen = len(pieces)
        if self._pieces_seen > MAX_PIECES or self._piece_text > MAX_PIECE_TEXT:
            raise RecordError("there are more tokens than a vocabulary has")
        return step


def _number_at(content: bytes, start: int) -> tuple[int, int]:
    """The number at a place of a frame, and where it ends."""
    value = 0
    for place, byte in enumerate(content[start : start + 4]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, start + place + 1
    if len(content) < start + 4:
        raise CutShort
    raise RecordError("a number is longer than a frame")
