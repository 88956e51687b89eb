"""The frames of a trace file: events and steps on their way into one, and out of it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BufferedIOBase
from typing import Any, NoReturn

from engine.events import Step

from ..rounds.numbers import PackingError, number
from ..rounds.packing import Packer, Piece
from ..rounds.unpacking import Unpacker
from .coding import Cut, Decoder, Encoder
from .format import DICTIONARY, SYNC, Frame
from .step_coding import Coding, Decoding, StepModel

MAX_FRAME, MAX_LINES = 4 * 2**20, 32 * 2**20
"""Bytes of one, deflated or not; and of all lines together."""
MOST_STEPS = 1024
"""Steps that are coded in one frame."""
DAMAGED, TOO_LONG = "The trace is damaged", "The trace is longer than this program reads"


class Damage(Exception):
    """From here on the file holds nothing that can be used."""


def damaged(what: str) -> NoReturn:
    raise Damage(what)


class FrameWriter:
    """Puts events and steps into frames, handed out when due. Coding a step takes ten times as long as packing it, so a
    turn's steps are handed out packed, and replaced by coded ones when something else follows."""

    def __init__(self, write: Callable[[bytes, int], None]) -> None:
        """``write(data, instead)`` puts ``data`` in the place of the last ``instead`` bytes."""
        self._write = write
        self._deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zdict=DICTIONARY)
        self._lines = b""
        self._pieces: list[Piece] = []
        self._packer, self._model = Packer(self._pieces), StepModel()
        self._packed: list[bytes] = []
        """Steps to be coded: no more than fit into a model's context."""
        self._handed_out = self._instead = 0
        """How many of them were handed out, and in how many bytes."""
        self._before = self._packer.place.copy()
        """The packer as it was before the first of them."""

    def line(self, data: dict[str, Any]) -> None:
        self._end_steps()
        self._lines += json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"

    def step(self, step: Step) -> None:
        self._end_lines()
        if not self._packed:
            self._before = self._packer.place.copy()
        self._packed.append(self._packer.pack(step))

    @property
    def told(self) -> Iterator[Step]:
        """The steps since the latest line."""
        unpacker = Unpacker(self._pieces)
        unpacker.place = self._before.copy()
        return map(unpacker.unpack, self._packed)

    def settle(self, steps: Iterable[Step]) -> None:
        """These take the place of the steps since the latest line."""
        if self._packed:
            self._packer.back_to(self._before)
        self._packed, self._handed_out = [], 0
        for step in steps:
            self.step(step)
        frame = self._packed_frame(self._packed)
        self._write(frame, self._instead)
        self._handed_out, self._instead = len(self._packed), len(frame)

    def flush(self) -> None:
        """Hand out everything, in little time."""
        self._end_lines()
        if packed := self._packed[self._handed_out :]:
            frame = self._packed_frame(packed)
            self._write(frame, 0)
            self._handed_out += len(packed)
            self._instead += len(frame)

    def end(self) -> None:
        self._end_lines()
        self._end_steps()
        self._write(_frame(Frame.END, b""), 0)

    def _end_lines(self) -> None:
        if self._lines:
            deflated = self._deflate.compress(self._lines) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
            self._write(_frame(Frame.LINES, deflated.removesuffix(SYNC)), 0)
            self._lines = b""

    def _end_steps(self) -> None:
        if self._packed:
            self.flush()
            starts = range(0, len(self._packed), MOST_STEPS)
            self._write(
                b"".join(self._coded(self._packed[start : start + MOST_STEPS]) for start in starts), self._instead
            )
            self._packed, self._handed_out, self._instead = [], 0, 0

    @staticmethod
    def _packed_frame(packed: list[bytes]) -> bytes:
        return _frame(Frame.PACKED, b"".join(number(len(step)) + step for step in packed))

    def _coded(self, steps: list[bytes]) -> bytes:
        encoder = Encoder()
        for packed in steps:
            self._model.walk(Coding(self._model, encoder, packed))
        return _frame(Frame.STEPS, number(len(steps)) + encoder.finished())


class FrameReader:
    """Gives back what a :class:`FrameWriter` was given. Raises :class:`Damage` where nothing more can be used."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS, DICTIONARY)
        self._lines_left = MAX_LINES
        self._model = StepModel()

    def contents(self) -> Iterator[dict[str, Any] | bytes]:
        """Objects of lines, and packed steps. Frames of a kind that this program doesn't know are left out."""
        while True:
            kind, size = self._byte(), self._number()
            if size > MAX_FRAME:
                damaged(DAMAGED)
            content = self._file.read(size)
            whole = len(content) == size
            if kind == Frame.END:
                return
            if kind == Frame.LINES:
                yield from self._lines(content, whole)
            elif kind == Frame.STEPS:
                yield from self._steps(content, whole)
            elif kind == Frame.PACKED:
                yield from _packed(content, whole)
            if not whole:
                _cut_short()

    def _lines(self, content: bytes, whole: bool) -> Iterator[dict[str, Any]]:
        try:
            text = self._inflate.decompress(content + (SYNC if whole else b""), MAX_FRAME)
        except zlib.error:
            damaged(DAMAGED)
        self._lines_left -= len(text)
        if self._inflate.unconsumed_tail or self._lines_left < 0:
            damaged(TOO_LONG)
        *lines, rest = text.split(b"\n")
        if whole and rest:
            damaged(DAMAGED)
        for line in lines:
            yield _parsed(line)

    def _steps(self, content: bytes, whole: bool) -> Iterator[bytes]:
        try:
            count, start = _number_at(content, 0)
            decoder = Decoder(content[start:], whole)
            for _ in range(count):
                fields = Decoding(self._model, decoder)
                self._model.walk(fields)
                yield bytes(fields.packed)
        except Cut:
            _cut_short()
        except PackingError:
            damaged(DAMAGED)

    def _number(self) -> int:
        """The length of a frame."""
        value = 0
        for shift in range(0, 28, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        damaged(DAMAGED)

    def _byte(self) -> int:
        byte = self._file.read(1)
        return byte[0] if byte else _cut_short()


def _packed(content: bytes, whole: bool) -> Iterator[bytes]:
    """Steps that were not coded before the file was cut short."""
    place = 0
    try:
        while place < len(content):
            size, start = _number_at(content, place)
            place = start + size
            if place > len(content):
                raise PackingError("a step ends early") if whole else Cut
            yield content[start:place]
    except Cut:
        _cut_short()
    except PackingError:
        damaged(DAMAGED)


def _frame(kind: Frame, content: bytes) -> bytes:
    return bytes((kind,)) + number(len(content)) + content


def _number_at(content: bytes, start: int) -> tuple[int, int]:
    """The number at a place of a frame, and where it ends."""
    value = 0
    for place, byte in enumerate(content[start : start + 4]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, start + place + 1
    if len(content) < start + 4:
        raise Cut
    raise PackingError("a number is longer than a frame")


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        damaged(DAMAGED)
    return data if isinstance(data, dict) else damaged(DAMAGED)


def _cut_short() -> NoReturn:
    damaged("The trace was cut short")
