"""Reads what a terminal sends. Textual's own reader delays a lone Esc and Alt with a key by 100 ms, takes such a key
that repeats for text, breaks on escape sequences or paste ends split by a slow line, takes sequences *in* a paste for
keys, is slow on pastes, and goes deaf on bytes that are no UTF-8."""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from contextlib import suppress
from select import select
from time import monotonic, sleep

from textual import events
from textual._parser import ParseError
from textual._time import get_time
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from .line import Line, is_remote

ESCAPE = "\x1b"
SEQUENCE_SECONDS = 0.5
"""Seconds that the rest of a sequence may take on its way. Nobody types the beginning of one by hand."""
INTRODUCERS = "[O" + ESCAPE
"""The characters that go on with a sequence behind an Esc; any other one makes Alt and that character with it."""
READ_BYTES = 1 << 16
LAST_WORD_SECONDS = 1.0
"""Seconds that leaving waits for the terminal's answer to a question that was asked before."""
IDLE_SECONDS = 0.1
"""Seconds the reader waits for a key before it looks again at whether the program ends."""


class PatientParser(XTermParser):
    """Takes pastes out of the stream by itself; the rest is for Textual to understand."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pasted: list[str] | None = None
        """The pieces of the paste that has begun."""
        self._tail = ""
        """The last characters fed: the beginning of a marker may be among them."""

    def feed(self, data: str) -> Iterator[Message]:
        """Give the messages for what the terminal sent, as Textual does, but a paste in one piece, whatever is in
        it."""
        if not data:
            yield from super().feed(data)
        while data:
            marker = BRACKETED_PASTE_START if self._pasted is None else BRACKETED_PASTE_END
            end = (self._tail + data).find(marker)
            cut = len(data) if end < 0 else end + len(marker) - len(self._tail)
            part, data, follows = data[:cut], data[cut:], self._tail[-1:]
            self._tail = "" if end >= 0 else (self._tail + part)[1 - len(marker) :]
            if self._pasted is None:
                yield from self._feed_keys(part, follows)
                self._pasted = [] if end >= 0 else None
            else:
                self._pasted.append(part)
                if end >= 0:
                    yield from self._end_paste(self._pasted)

    def _feed_keys(self, data: str, follows: str) -> Iterator[Message]:
        """Give the messages for keys, as Textual does, but Alt with a key at once. ``follows``: the character fed
        before."""
        start = 0
        for place, character in enumerate(data):
            if follows == ESCAPE and character not in INTRODUCERS:
                yield from super().feed(data[start : place + 1])
                start = place + 1
                if self._timeout_time is not None:
                    self._timeout_time = 0.0
                    yield from super().tick()
            follows = character
        if start < len(data):
            yield from super().feed(data[start:])

    def _end_paste(self, pieces: list[str]) -> Iterator[Message]:
        self._pasted = None
        text = "".join(pieces).removesuffix(BRACKETED_PASTE_END)
        for message in super().feed(BRACKETED_PASTE_END):  # Textual has seen a paste of nothing
            yield events.Paste(text.replace("\x00", "")) if isinstance(message, events.Paste) else message

    def tick(self) -> Iterable[Message]:
        """The messages for keys whose rest has not come within the time a sequence may take, such as a lone Esc."""
        return () if self.patience is None or self.patience > 0 else super().tick()

    @property
    def patience(self) -> float | None:
        """Seconds until :meth:`tick` has something to do; None when nothing waits."""
        if self._timeout_time is None:
            return None
        more = 0.0 if self._tail.endswith(ESCAPE) else SEQUENCE_SECONDS
        return max(self._timeout_time + more - get_time(), 0.0)


class PatientDriver(LinuxDriver):
    """Textual's driver with :class:`PatientParser` as its reader. Says when a slow line holds up what is written."""

    _line: Line | None = None
    """Measures how far behind the terminal is; None unless the screen is shown over SSH."""

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._line = Line() if is_remote() else None

    def stop_application_mode(self) -> None:
        """Leave as Textual does, after reading the terminal's last answer: the shell would take it for typing."""
        deadline = monotonic() + LAST_WORD_SECONDS
        while self._line is not None and self._line.expects and monotonic() < deadline:
            sleep(0.01)
        self._line = None
        super().stop_application_mode()

    def write(self, data: str) -> None:
        super().write(data if self._line is None else data + self._line.ask())

    def process_message(self, message: Message) -> None:
        if not isinstance(message, events.CursorPosition):
            super().process_message(message)
        elif self._line is not None:
            self._line.hear()

    def run_input_thread(self) -> None:
        """Reads until the driver is told to exit."""
        parser = PatientParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        if typed := self._typed_before():
            self._process(parser.feed(decode(typed)))
        while not self.exit_event.is_set():
            patience = parser.patience
            seconds = IDLE_SECONDS if patience is None else min(patience, IDLE_SECONDS)
            if select([self.fileno], [], [], seconds)[0]:
                data = self._read()
                if not data:
                    break
                self._process(parser.feed(decode(data)))
            self._process(parser.tick())
        self.exit_event.wait()
        with suppress(EOFError, ParseError):
            list(parser.feed(""))

    @property
    def backed_up(self) -> bool:
        """Whether the terminal has still to take, or to show, what was written before."""
        waiting = self._writer_thread is not None and not self._writer_thread._queue.empty()
        return waiting or (self._line is not None and self._line.backed_up)

    def _read(self) -> bytes:
        """The bytes that the terminal has sent; empty when the terminal is gone."""
        try:
            return os.read(self.fileno, READ_BYTES)
        except OSError:
            return b""

    def _typed_before(self) -> bytes:
        """What was typed while the terminal still gathered lines, where Enter makes a new line. The last one sends the
        question; those before it belong to a paste."""
        typed, self._app.typed = getattr(self._app, "typed", b""), b""  # type: ignore[attr-defined]
        if select([self.fileno], [], [], 0)[0]:
            typed += self._read()
        return typed[:-1] + b"\r" if typed.endswith(b"\n") else typed

    def _process(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)
