"""The frames of a trace file: events and steps on their way into one, and out of it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import Any, NoReturn

from engine.events import Step

from .coding import Cut, Decoder, Encoder
from .format import DICTIONARY, SYNC, Frame
from .packing import Packer, PackingError, put_number
from .step_coding import Coding, Decoding, StepModel

MAX_FRAME, MAX_LINES = 4 * 2**20, 32 * 2**20
"""Bytes of one, deflated or not; and of all lines together."""
MOST_STEPS = 1024
"""Steps of one frame, when nothing ended it earlier."""
DAMAGED, TOO_LONG = "The trace is damaged", "The trace is longer than this program reads"


class Damage(Exception):
    """From here on the file holds nothing that can be used."""


def damaged(what: str) -> NoReturn:
    raise Damage(what)


class FrameWriter:
    """Puts events and steps into frames, and hands those out when they are due."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zdict=DICTIONARY)
        self._lines = b""
        self._packer, self._model = Packer(), StepModel()
        self._encoder, self._steps = Encoder(), 0

    def line(self, data: dict[str, Any]) -> None:
        self._end_steps()
        self._lines += json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"

    def step(self, step: Step) -> None:
        self._end_lines()
        self._model.walk(Coding(self._model, self._encoder, self._packer.pack(step)))
        self._steps += 1
        if self._steps == MOST_STEPS:
            self._end_steps()

    def flush(self) -> None:
        """Hand out everything. What comes next costs a few bytes more."""
        self._end_lines()
        self._end_steps()

    def end(self) -> None:
        self.flush()
        self._put(Frame.END, b"")

    def _end_lines(self) -> None:
        if self._lines:
            deflated = self._deflate.compress(self._lines) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
            self._put(Frame.LINES, deflated.removesuffix(SYNC))
            self._lines = b""

    def _end_steps(self) -> None:
        if self._steps:
            content = bytearray()
            put_number(content, self._steps)
            self._put(Frame.STEPS, bytes(content) + self._encoder.finished())
            self._encoder, self._steps = Encoder(), 0

    def _put(self, kind: Frame, content: bytes) -> None:
        head = bytearray((kind,))
        put_number(head, len(content))
        self._write(bytes(head) + content)


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
            count, start = _number_at(content)
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
        number = 0
        for shift in range(0, 28, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        damaged(DAMAGED)

    def _byte(self) -> int:
        byte = self._file.read(1)
        return byte[0] if byte else _cut_short()


def _number_at(content: bytes) -> tuple[int, int]:
    """The number that a frame begins with, and where it ends."""
    number = 0
    for place, byte in enumerate(content[:4]):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return number, place + 1
    if len(content) < 4:
        raise Cut
    raise PackingError("a frame has more steps than frames have")


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        damaged(DAMAGED)
    return data if isinstance(data, dict) else damaged(DAMAGED)


def _cut_short() -> NoReturn:
    damaged("The trace was cut short")
