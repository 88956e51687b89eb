"""The questions that were asked before, on disk, shared by every window of the program: a line of JSON each, the text,
or a list in which every second part of it was pasted."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from ..files.places import state_directory
from ..platforms import last_byte

HISTORY_NAME = "history.jsonl"
NO_HISTORY_VARIABLE = "DFLASH_CHAT_NO_HISTORY"
READ = 4 * 1024 * 1024
"""Bytes at the end of the file that are read: some ten thousand questions."""


class PromptHistory:
    """Questions, oldest first. Never raises ``OSError``: a history that can't be kept is a nuisance, not a failure."""

    def __init__(self, path: Path | None) -> None:
        """``path`` None keeps the questions of this run in memory only."""
        self._path = path
        read = _read(path) if path else []
        self.entries = ["".join(parts) for parts in read]
        self.pasted = {"".join(parts): tuple(parts[1::2]) for parts in read if len(parts) > 1}
        """Texts in a question that were pasted, in their order, by the question."""

    @classmethod
    def default(cls, keep: bool = True) -> PromptHistory:
        """The user's own, unless they want none: ``keep`` False, or ``$DFLASH_CHAT_NO_HISTORY`` set."""
        wanted = keep and not os.environ.get(NO_HISTORY_VARIABLE)
        return cls(state_directory() / HISTORY_NAME if wanted else None)

    def add(self, text: str, pasted: Sequence[str] = ()) -> None:
        """The newest question; one that only repeats the one before it is not kept twice. ``pasted``: texts in it that
        were pasted, in their order."""
        if self.entries and self.entries[-1] == text:
            return
        self.entries.append(text)
        parts = _parts(text, pasted)
        if len(parts) > 1:
            self.pasted[text] = tuple(parts[1::2])
        if self._path is not None:
            _append(self._path, _encode(parts))

    def whole(self, index: int) -> tuple[str, tuple[str, ...]]:
        """A question, and the texts in it that were pasted."""
        return self.entries[index], self.pasted.get(self.entries[index], ())

    def search(self, words: str) -> list[str]:
        """Different questions holding every one of ``words``, newest first; commands only if these begin like one."""
        wanted = words.casefold().split()
        newest = dict.fromkeys(reversed(self.entries))
        return [
            text
            for text in newest
            if _is_command(text) <= words.startswith("/") and all(word in text.casefold() for word in wanted)
        ]


def _is_command(text: str) -> bool:
    """Whether a text is a command: it begins with a slash. ``//`` begins a question that does."""
    return text.startswith("/") and not text.startswith("//")


def _append(path: Path, data: bytes) -> None:
    """One write to the end of the file, so that several windows don't mix their lines."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        return
    try:
        os.write(descriptor, data if _ends_whole(descriptor) else b"\n" + data)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _ends_whole(descriptor: int) -> bool:
    """Whether the last line has its end, which a full disk may have cost it."""
    return last_byte(descriptor) in (b"", b"\n")


def _parts(text: str, pasted: Sequence[str]) -> list[str]:
    """The text in parts, of which every second one was pasted."""
    parts, rest = list[str](), text
    for paste in (each.strip("\n") for each in pasted):
        typed, separator, behind = rest.partition(paste) if paste else ("", "", "")
        if separator:
            parts, rest = [*parts, typed, separator], behind
    return [*parts, rest]


def _read(path: Path) -> list[list[str]]:
    try:
        with open(path, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - READ, 0))
            data = file.read()
    except OSError:
        return []
    return [parts for raw in data.split(b"\n") if (parts := _decode(raw))]


def _encode(parts: list[str]) -> bytes:
    content = parts if len(parts) > 1 else parts[0]
    return (json.dumps(content, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _decode(raw: bytes) -> list[str]:
    """The parts of the question that a line of a history holds; none for a damaged line, which costs only itself."""
    try:
        content = json.loads(raw)
    except ValueError:
        return []
    parts = content if isinstance(content, list) else [content]
    return parts if all(isinstance(text, str) for text in parts) else []
