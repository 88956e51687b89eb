"""Put the prompt together from ``--prompt`` and from what is piped in."""

from __future__ import annotations

import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TextIO

from dflash_tui.core.exit_codes import ExitCode

from ..problems import Problem
from ..terminal.saying import remark

MAX_PROMPT_BYTES = 2 * 1024 * 1024
"""More than the longest context (256 Ki tokens of four characters); an endless pipe stops here."""
PIECE_BYTES = 64 * 1024
SILENT_SECONDS = 2.0
"""Seconds without input after which the program says that it waits for stdin."""


def read_prompt(argument: str | None, stdin: TextIO | None, timeout: float | None = None) -> str | None:
    """``argument``, piped stdin, or both with an empty line between; None, which opens the chat, for neither.
    ``-`` is what is piped in, and nothing else. :class:`Problem` for a prompt that is empty, too long or not UTF-8, and
    for a stdin that is open for longer than ``timeout``, in seconds."""
    if argument == "-":
        if stdin is None or stdin.isatty():
            raise Problem("-p - reads the prompt from a pipe, and there is none.", "Pipe it in: -p - < FILE")
        argument = None
    piped = None if stdin is None or stdin.isatty() else _read_text(stdin, timeout)
    if argument is None and piped is None:
        return None
    prompt = "\n\n".join(text for text in (argument, piped) if text and text.strip())
    if not prompt:
        raise Problem("The prompt is empty.", 'Say what you want to know: -p "Write a quicksort in Python"')
    if len(prompt.encode(errors="replace")) > MAX_PROMPT_BYTES:
        raise _too_long()
    return prompt


def _read_text(stdin: TextIO, timeout: float | None) -> str:
    data = _read_bytes(stdin, timeout)
    if len(data) > MAX_PROMPT_BYTES:
        raise _too_long()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Problem(
            f"What was piped in is not UTF-8 text (byte {error.start}).", "Convert it first, for example with iconv."
        ) from error


def _read_bytes(stdin: TextIO, timeout: float | None) -> bytes:
    """Read stdin up to its end, or somewhat more than a prompt may have. Says once that it waits where that takes
    long."""
    pieces: SimpleQueue[bytes | OSError] = SimpleQueue()
    Thread(target=_read_pieces, args=(stdin, pieces), name="stdin", daemon=True).start()
    deadline = None if timeout is None else time.monotonic() + timeout
    data, has_announced = b"", False
    while True:
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        wait = left if has_announced else min(SILENT_SECONDS, SILENT_SECONDS if left is None else left)
        try:
            piece = pieces.get(timeout=wait)
        except Empty:
            if deadline is not None and time.monotonic() >= deadline:
                raise _still_open(bool(data)) from None
            remark(f"{WAITING if not data else OPEN} Where nothing is to come: < /dev/null")
            has_announced = True
            continue
        if isinstance(piece, OSError):
            raise Problem(f"stdin can't be read: {piece.strerror}.", "Leave it out: < /dev/null") from piece
        data += piece
        if not piece or len(data) > MAX_PROMPT_BYTES:
            return data


WAITING = "Waiting for stdin, which is open: nothing has come of it yet."
OPEN = "Waiting for the end of stdin."


def _read_pieces(stdin: TextIO, pieces: SimpleQueue[bytes | OSError]) -> None:
    """Put what stdin gives into ``pieces``, and an empty one at its end. Runs on a thread: nobody can end a read."""
    read = 0
    source = getattr(stdin.buffer, "raw", stdin.buffer)  # without the lock that Python's end would find taken
    with suppress(ValueError):  # closed, as the program ends
        try:
            while read <= MAX_PROMPT_BYTES:
                piece = source.read(PIECE_BYTES) or b""
                read += len(piece)
                pieces.put(piece)
                if not piece:
                    break
        except OSError as error:
            pieces.put(error)


def _still_open(begun: bool) -> Problem:
    what = "the end of stdin" if begun else "stdin, of which nothing has come"
    hint = "Close it where nothing is to come: < /dev/null"
    return Problem(f"The time that --timeout allows is up; it went with waiting for {what}.", hint, ExitCode.TIMEOUT)


def _too_long() -> Problem:
    return Problem(
        f"The prompt is longer than {MAX_PROMPT_BYTES // 1024 // 1024} MiB, more than any context holds.",
        "Send a part of it: head -c 20000 FILE | dflash-chat",
    )
