"""The guard before the keyboard: cuts the bytes that a terminal sends into what a person did, and takes away the rest.

A terminal answers questions late, tells of keys that are let go, and sends control strings that nobody asked for; a
slow line cuts all of that, and single letters, wherever it likes. What leaves here is whole, and one of three: text
that was typed, a sequence, a paste. Forms are those of ECMA-48, section 5, and of xterm's "Control Sequences"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Literal, NamedTuple

ESCAPE_SECONDS, REMOTE_ESCAPE_SECONDS = 0.02, 0.1
"""Seconds after which an Esc that nothing followed was the key, from a terminal of this machine, which sends a sequence
at once, and through a network, which may cut one behind its Esc."""
SEQUENCE_SECONDS = 0.5
"""Seconds after which the beginning of a sequence was Alt with that key, and an Esc at the end of a paste the key."""
OPEN_SECONDS = 2.0
"""Seconds of silence that end a paste, or whatever else lacks its end."""
LONGEST = 4096
"""Bytes of an open sequence that are kept: none that means something has as many."""

PASTE = b"\x1b[200~"
PASTE_END, LONGEST_END = re.compile(rb"(?:\x1b\[|\xc2?\x9b)201~"), 6

_LETTER_FORM = (
    rb"[\x00-\x1a\x1c-\x7f]|\xc2[\xa0-\xbf]|[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
"""A letter of UTF-8, or a control character of ASCII but Esc."""
_LETTER = re.compile(_LETTER_FORM)
_TEXT = re.compile(rb"(?:%b)+" % _LETTER_FORM)
_HALF_LETTER = re.compile(rb"[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2}")
_SEQUENCE = re.compile(rb"\x1b(?:\[(?:\[[A-E]|M[\x20-\xff]{3}|\d+\$|(?![M\[])[ -?]*[@-~])|O[0-9;]*[A-Za-z])")
"""Esc with [ or O. Three forms aside: function keys of the Linux console, a mouse of old, Shift with a key in rxvt."""
_HALF_SEQUENCE = re.compile(rb"\x1b(?:\[(?:M[\x20-\xff]{0,2}|\[|[ -?]*)|O[0-9;]*)?")
_STRING = re.compile(rb"\x1b[\]PX^_]")
"""What begins a control string: OSC, DCS, SOS, PM, APC."""
_STRING_END = re.compile(rb"\x1b\\|\xc2\x9c|\x07|[\x18\x1a]|(?=\x1b[^\\])|(?=[\x00-\x06\x08-\x17\x19\x1c-\x1f\x7f])")
"""What ends it: ST or a bell; or anything that stands in none, such as Enter."""
_EIGHT_BITS_END = re.compile(rb"\x9c|%b" % _STRING_END.pattern)
"""What ends one of a terminal that sends eight bits and no UTF-8: in that, letters hold such a byte."""
_EIGHT_BITS = re.compile(rb"\xc2?([\x8f\x90\x98\x9b\x9d-\x9f])")
"""What stands in terminals of eight bits for Esc with the letter of a sequence or of a control string."""
_REPORTS = re.compile(rb"(?:\x1b\[(?:<[\d;-]*[Mm]|[IO]|M[\x20-\xff]{3}))+")
"""A mouse that moves, and the focus: nothing of a paste."""
_NOT_PASTED = re.compile(rb"\x00|%b|%b" % (re.escape(PASTE), _REPORTS.pattern))
_ESCAPE_KEY = re.compile(rb"\x1b(?:\[27(?:;[\d:]*)*u)?")


class Input(NamedTuple):
    """Something whole that came from the terminal."""

    kind: Literal["text", "sequence", "paste"]
    text: str
    """Characters as they were typed or pasted; of a sequence all, the Esc too."""


class InputGuard:
    """Takes what was read, piece by piece, and gives what is whole. Never raises, whatever the bytes are."""

    def __init__(self, clock: Callable[[], float] = monotonic, escape_seconds: float = REMOTE_ESCAPE_SECONDS) -> None:
        self._clock = clock
        self._escape_seconds = escape_seconds
        self._heard = 0.0
        """When the last byte came, by the clock."""
        self._held = b""
        """The beginning of a letter or of a sequence."""
        self._paste: bytearray | None = None
        """What has come of a paste."""
        self._escaped = False
        """Whether Esc alone is the newest that has come of a paste."""
        self._string_end: re.Pattern[bytes] | None = None
        """What ends the control string that is being taken away; None outside of one."""

    def feed(self, data: bytes) -> Iterator[Input]:
        """What is whole with these bytes, in order."""
        if self._paste is None or not _REPORTS.fullmatch(data):
            self._heard, self._escaped = self._clock(), bool(_ESCAPE_KEY.fullmatch(data))
        data, self._held = self._held + data, b""
        while data:
            if self._paste is not None:
                before = len(self._paste)
                self._paste += data
                end = PASTE_END.search(self._paste, max(0, before - LONGEST_END))
                if end is None:
                    return
                data = bytes(self._paste[end.end() :])
                yield self._end_paste(self._paste[: end.start()])
            elif self._string_end is not None:
                data = self._skip_string(data, self._string_end)
            else:
                inputs, data = self._first(data)
                if inputs is not None:
                    yield inputs

    @property
    def patience(self) -> float | None:
        """Seconds until :meth:`tick` has something to do; None when nothing waits for more."""
        if self._paste is not None:
            seconds = SEQUENCE_SECONDS if self._escaped else OPEN_SECONDS
        elif self._held == b"\x1b":
            seconds = self._escape_seconds if self._string_end is None else SEQUENCE_SECONDS
        elif self._string_end is not None or len(self._held) > 2:
            seconds = OPEN_SECONDS
        elif self._held[:1] == b"\x1b":
            seconds = SEQUENCE_SECONDS
        else:  # half a letter waits for its next byte, which may be another's
            return None
        return max(self._heard + seconds - self._clock(), 0.0)

    def tick(self) -> Iterator[Input]:
        """What is whole because nothing followed in time: Esc, Alt with a key, a paste whose end was lost."""
        if self.patience != 0:
            return
        held, self._held, self._string_end = self._held, b"", None
        if self._paste is not None:
            yield self._end_paste(_SEQUENCE.sub(b"", self._paste).rstrip(b"\x1b"))
        elif held[:1] == b"\x1b" and len(held) <= 2:
            yield Input("sequence", held.decode("ascii", "ignore"))

    def _first(self, data: bytes) -> tuple[Input | None, bytes]:
        """What these bytes begin with, None when that is taken away or waits for more; and the bytes behind it."""
        if text := _TEXT.match(data):
            return Input("text", text[0].decode(errors="ignore")), data[text.end() :]
        if eight := _EIGHT_BITS.match(data):
            begun, data = bytes((0x1B, eight[1][0] - 0x40)), data[eight.end() :]
            if _STRING.match(begun):
                self._string_end = _EIGHT_BITS_END if eight[0] == eight[1] else _STRING_END
                return None, data
            data = begun + data
        if data[:1] != b"\x1b":
            self._held = data if _HALF_LETTER.fullmatch(data) else b""
            return None, b"" if self._held else data[1:]
        if whole := _SEQUENCE.match(data):
            if whole[0] == PASTE:
                self._paste = bytearray()
            known = whole[0] != PASTE and not PASTE_END.fullmatch(whole[0])
            return (Input("sequence", whole[0].decode("latin-1")) if known else None), data[whole.end() :]
        if _HALF_SEQUENCE.fullmatch(data) or _STRING.fullmatch(data):
            self._held = data[:LONGEST]
            return None, b""
        if _STRING.match(data):
            self._string_end = _STRING_END
            return None, data[2:]
        if data[1:2] == b"\x1b":
            return Input("sequence", "\x1b"), data[1:]
        half = _HALF_SEQUENCE.match(data)
        if half is not None and half.end() > 1:  # what follows can't be a part of it
            alone = Input("sequence", half[0].decode("ascii")) if half.end() == 2 else None
            return alone, data[half.end() :]
        if letter := _LETTER.match(data, 1):
            character = letter[0].decode(errors="ignore")
            return (Input("sequence", f"\x1b{character}") if character else None), data[letter.end() :]
        self._held = data if _HALF_LETTER.fullmatch(data, 1) else b""
        return None, b"" if self._held else data[1:]

    def _skip_string(self, data: bytes, form: re.Pattern[bytes]) -> bytes:
        """The bytes behind the control string, which ends as ``form`` says; a beginning of its end is held."""
        end = form.search(data)
        if end is None:
            self._held = data[-1:] if data[-1:] in (b"\x1b", b"\xc2") else b""
            return b""
        self._string_end = None
        return data[end.end() :]

    def _end_paste(self, text: bytes | bytearray) -> Input:
        self._paste = None
        return Input("paste", _NOT_PASTED.sub(b"", text).decode(errors="replace"))
