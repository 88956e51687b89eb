"""The frames of a trace file: events and steps on their way into one, and out of it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import Any, NoReturn

from ..records.round_log import RoundLog
from .format import DICTIONARY, SYNC, Frame

MAX_FRAME, MAX_LINES = 4 * 2**20, 32 * 2**20
"""Bytes of one, deflated or not; and of all lines together."""
DAMAGED, TOO_LONG = "The trace is damaged", "The trace is longer than this program reads"


class Damage(Exception):
    """Raised where a file holds nothing more that can be used."""


def damaged(what: str) -> NoReturn:
    raise Damage(what)


class FrameWriter:
    """Puts lines and rounds into frames. While a turn goes on, the rounds that fill no block yet stand at the file's
    end in a block for the moment, in the place of which the next ones are written."""

    def __init__(self, write: Callable[[bytes, int], None]) -> None:
        """``write(data, instead)`` puts ``data`` in the place of the last ``instead`` bytes."""
        self._write = write
        self._deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zdict=DICTIONARY)
        self._lines = b""
        self._log: RoundLog | None = None
        self._num_blocks = self._num_rounds = self._instead = 0
        """How many of the log's blocks and rounds are in the file, and how many bytes at its end will be replaced."""

    def line(self, data: dict[str, Any]) -> None:
        """Adds an event as a line of JSON behind everything so far. To be called where no rounds wait for a whole
        block."""
        self._lines += json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"

    def rounds(self, log: RoundLog, *, rest: bool = False) -> None:
        """Write what of a turn's rounds is not in the file yet. ``rest``: what comes next is no round."""
        self.flush()
        if log is not self._log:
            self._log, self._num_blocks, self._num_rounds, self._instead = log, 0, 0, 0
        log.seal(rest=rest)
        if len(log) == self._num_rounds and not rest:
            return
        self._num_rounds = len(log)
        blocks, moment = log.since(self._num_blocks)
        frames = b"".join(_frame(Frame.ROUNDS, block) for block in blocks)
        waiting = b"" if moment is None or rest else _frame(Frame.ROUNDS, moment)
        if frames or waiting:
            self._write(frames + waiting, self._instead)
        self._num_blocks, self._instead = self._num_blocks + len(blocks), len(waiting)

    def flush(self) -> None:
        """Write the lines that were added as a frame."""
        if self._lines:
            deflated = self._deflate.compress(self._lines) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
            self._write(_frame(Frame.LINES, deflated.removesuffix(SYNC)), 0)
            self._lines = b""

    def end(self) -> None:
        self.flush()
        self._write(_frame(Frame.END, b""), 0)


class FrameReader:
    """Gives back what a :class:`FrameWriter` was given. Raises :class:`Damage` where nothing more can be used."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS, DICTIONARY)
        self._lines_left = MAX_LINES

    def contents(self) -> Iterator[dict[str, Any] | bytes]:
        """Objects of lines, and blocks of rounds. Frames of a kind that this program doesn't know are left out."""
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
            elif kind == Frame.ROUNDS and whole:
                yield content
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

    def _number(self) -> int:
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


def _frame(kind: Frame, content: bytes) -> bytes:
    head, size = bytearray((kind,)), len(content)
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes((*head, size)) + content


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        damaged(DAMAGED)
    return data if isinstance(data, dict) else damaged(DAMAGED)


def _cut_short() -> NoReturn:
    damaged("The trace was cut short")
