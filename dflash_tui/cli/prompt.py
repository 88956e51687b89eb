"""Put the prompt together from ``--prompt`` and from what is piped in."""

from __future__ import annotations

from typing import TextIO

from .problems import Problem

MAX_PROMPT_BYTES = 2 * 1024 * 1024
"""More than the longest context (256 Ki tokens of four characters); an endless pipe stops here."""


def read_prompt(argument: str | None, stdin: TextIO | None) -> str | None:
    """``argument``, piped stdin, or both with an empty line between; None, which opens the chat, for neither.
    ``-`` is what is piped in, and nothing else. :class:`Problem` for a prompt that is empty, too long or not UTF-8."""
    if argument == "-":
        if stdin is None or stdin.isatty():
            raise Problem("-p - reads the prompt from a pipe, and there is none.", "Pipe it in: -p - < FILE")
        argument = None
    piped = None if stdin is None or stdin.isatty() else _read_text(stdin)
    if argument is None and piped is None:
        return None
    prompt = "\n\n".join(part for part in (argument, piped) if part and part.strip())
    if not prompt:
        raise Problem("The prompt is empty.", 'Say what you want to know: -p "Write a quicksort in Python"')
    if len(prompt.encode(errors="replace")) > MAX_PROMPT_BYTES:
        raise _too_long()
    return prompt


def _read_text(stdin: TextIO) -> str:
    data = stdin.buffer.read(MAX_PROMPT_BYTES + 1)
    if len(data) > MAX_PROMPT_BYTES:
        raise _too_long()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Problem(
            f"What was piped in is not UTF-8 text (byte {error.start}).", "Convert it first, for example with iconv."
        ) from error


def _too_long() -> Problem:
    return Problem(
        f"The prompt is longer than {MAX_PROMPT_BYTES // 1024 // 1024} MiB, more than any context holds.",
        "Send a part of it: head -c 20000 FILE | dflash-chat",
    )
