"""Reads what a terminal sends, behind :mod:`.input_guard`, and gives Textual its messages. Textual's own reader ends
the program at a letter that comes in two reads or at a key that is let go, types replies, and waits 100 ms for Alt with
a key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from select import select
from time import monotonic, sleep
from typing import Any
from unicodedata import category

from textual import events
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.message import Message

from .input_guard import ESCAPE_SECONDS, REMOTE_ESCAPE_SECONDS, Input, InputGuard
from .line import Line, is_remote
from .themed import ThemedApp

READ_BYTES = 1 << 16
LAST_WORD_SECONDS = 1.0
"""Seconds that leaving waits for the terminal's answer to a question that was asked before."""
IDLE_SECONDS = 0.1
"""Seconds the reader waits for a key before it looks again at whether the program ends."""

_KEY = re.compile(r"\x1b\[(\d*+)[\d:]*+(?:;(\d*+)(?::(\d*+))?)?(?:;([\d:]*+))?([u~A-FHPQRS])")
"""A key as kitty and xterm tell it: its code, modifiers, whether pressed or let go, text, and the last letter."""
LET_GO = "3"
_REPORT = re.compile(
    r"\x1b\[(?:[IO]|<\d{1,4};-?\d{1,5};-?\d{1,5}[Mm]|\d{1,5};\d{1,5}R|\?(?:2026|2048);\d\$y"
    r"|48(?:;[1-9]\d{0,4}(?::\d*)?){4}t)"
)
"""What Textual understands besides keys: focus, mouse, the cursor's place, two modes, a size in cells and pixels."""


class Translator:
    """Makes Textual's messages of what the guard lets through. What is neither a key nor a report makes none."""

    def __init__(self, debug: bool = False) -> None:
        self._textual = XTermParser(debug)
        self._tells_sizes = False
        """Whether the terminal has said that it tells its size; nobody else's size is taken."""

    def messages(self, input_: Input) -> Iterator[Message]:
        """The messages for one thing that the terminal sent."""
        if input_.kind == "paste":
            yield events.Paste(input_.text)
        elif input_.kind == "text":
            for character in input_.text:
                if category(character) == "Cf":  # a joiner of an emoji, of Persian: no key of Textual's writes one
                    yield events.Paste(character)
                else:
                    yield from self._keys(character)
        elif _REPORT.fullmatch(input_.text):
            self._tells_sizes |= input_.text.startswith("\x1b[?2048;") and input_.text[8] in "1234"
            if self._tells_sizes or not input_.text.endswith("t"):
                yield from self._textual.feed(input_.text)
        elif match := _KEY.fullmatch(input_.text):
            yield from self._key_events_of(*match.groups(""))
        elif keys := list(self._keys(input_.text)):
            yield from keys
        elif len(input_.text) == 2:
            for key in self._keys(input_.text[1:], alt=True):
                yield events.Key("alt+" + key.key.removeprefix("alt+"), None)

    def _keys(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        key_events = self._textual._sequence_to_key_events(sequence, alt)
        return [key for key in key_events if key.key != "<ignore>"]

    def _key_events_of(self, code: str, modifiers: str, happened: str, text: str, last: str) -> Iterable[events.Key]:
        """The keys of a sequence that says which key, and what was done with it."""
        if (code, last) == ("27", "~"):  # xterm: the key's code stands where others have its text
            code, text, last = text, "", "u"
        if happened == LET_GO or max(len(code), len(modifiers)) > 6:
            return ()
        typed = [
            code_point
            for code_point in text.split(":")
            if code_point and len(code_point) < 8 and _is_printable(int(code_point))
        ]
        named = f"{int(code or 1)}{last}" in FUNCTIONAL_KEYS
        if not named and (last != "u" or not (typed or _is_printable(int(code or 0)))):
            return ()
        return self._keys(f"\x1b[{int(code or 1)};{int(modifiers or 1)};{':'.join(typed)}{last}")


def _is_printable(code: int) -> bool:
    return code < 0x110000 and chr(code).isprintable()


class PatientDriver(LinuxDriver):
    """Textual's driver with a reader of its own. Says when a slow line holds up what is written."""

    _line: Line | None = None
    """Measures how far behind the terminal is; None unless the screen is shown over SSH."""
    _newest_size: Size | None = None
    """The newest size that was told, by the system or by the terminal itself: of this one an event is to come."""

    def __init__(self, app: ThemedApp, **options: Any) -> None:
        super().__init__(app, **options)
        self._owner = app
        app.backed_up = self._backed_up
        app.overtaken = self._overtaken

    def _overtaken(self, size: Size) -> bool:
        """Whether the terminal has told another size since: whoever drags a window leaves dozens, each of which
        would be laid out and drawn."""
        return self._newest_size not in (None, size)

    def _get_terminal_size(self) -> tuple[int, int]:
        self._newest_size = Size(*super()._get_terminal_size())
        return self._newest_size

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
        if isinstance(message, events.Resize):
            self._newest_size = message.size
        if not isinstance(message, events.CursorPosition):
            super().process_message(message)
        elif self._line is not None:
            self._line.hear()

    def run_input_thread(self) -> None:
        """Reads until the driver is told to exit. A mistake ends the application as one of the screen's own does."""
        try:
            self._read_on()
        except Exception as error:  # whatever it is, it has a sentence and an exit code there
            self._owner.call_later(_raise, error)

    def _read_on(self) -> None:
        guard = InputGuard(escape_seconds=REMOTE_ESCAPE_SECONDS if is_remote() else ESCAPE_SECONDS)
        translator = Translator()

        def process(inputs: Iterable[Input]) -> None:
            for each in inputs:
                for message in translator.messages(each):
                    self.process_message(message)

        process(guard.feed(self._typed_before()))
        while not self.exit_event.is_set():
            patience = guard.patience
            seconds = IDLE_SECONDS if patience is None else min(patience, IDLE_SECONDS)
            if select([self.fileno], [], [], seconds)[0]:
                data = self._read()
                if not data:
                    break
                process(guard.feed(data))
            process(guard.tick())
        self.exit_event.wait()

    def _backed_up(self) -> bool:
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
        typed = self._read() if select([self.fileno], [], [], 0)[0] else b""
        return typed[:-1] + b"\r" if typed.endswith(b"\n") else typed


def _raise(error: Exception) -> None:
    raise error
