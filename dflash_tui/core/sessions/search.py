"""Search over everything that was ever said: questions, answers and names, as the files of the conversations hold
them. What was read stays in memory as long as its file is the same."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ..files.places import sessions_directory
from .archive import SessionSummary, survey
from .sessions import SUFFIX, load_session

MOST_KEPT = 4096
"""How many conversations stay in memory."""
_WORD = re.compile(r'"[^"]+"|\S+')


class _File(NamedTuple):
    changed_ns: int
    path: Path
    size: int


class Match(NamedTuple):
    """Where words were said."""

    turn: int
    """0 for what isn't a turn's: the conversation's name, its model, its id."""
    text: str
    """All that was said there, on one line."""


class _Line(NamedTuple):
    match: Match
    folded: str


class Search:
    """Everything said in the conversations of a folder. A conversation is found by words that were all said in it; of
    each, the latest first, the latest place with the most of them. Words may be cut short; “several in quotes” stand
    as they are."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or sessions_directory()
        self._read: list[_File] = []

    def find(self, words: str) -> dict[Path, Match]:
        """Where all of ``words`` were said."""
        return _matches(_files(self._directory), words)

    def known(self, words: str) -> dict[Path, Match]:
        """Where they were said in what :meth:`read` has read so far."""
        return _matches(tuple(self._read), words)

    def read(self) -> Iterator[int]:
        """Reads the conversations, the latest first; gives how many are left to read. On any thread."""
        files = _files(self._directory)
        for index, file in enumerate(files, 1):
            _said_in(file)
            self._read.append(file)
            yield len(files) - index


def conversations(words: str = "", directory: Path | None = None) -> tuple[list[SessionSummary], list[str]]:
    """The conversations in which all of ``words`` were said, or all of them, the latest first; and why others can't be
    read."""
    matches = Search(directory).find(words)
    readable, unreadable = survey(directory)
    return [each for each in readable if each.matches(words) or each.path in matches], unreadable


def folded(words: str) -> list[str]:
    """The words as they are looked for in what was said, folded, too; quotes hold several together."""
    wanted = (match.strip('"').casefold() for match in _WORD.findall(unicodedata.normalize("NFC", words)))
    return [word for word in (" ".join(each.replace('"', " ").split()) for each in wanted) if word]


def around(text: str, words: str, length: int) -> str:
    """At most ``length`` characters of a line, from just before the first of ``words`` in it."""
    line = text.casefold()
    first = min((at for word in folded(words) if (at := line.find(word)) >= 0), default=0)
    start = text.rfind(" ", 0, max(first - length // 4, 0)) + 1 if first > length // 2 else 0
    return f"{'…' if start else ''}{text[start:]}"[:length]


def _matches(files: Iterable[_File], words: str) -> dict[Path, Match]:
    wanted, matches = folded(words), dict[Path, Match]()
    for file in files if wanted else ():
        lines = _said_in(file)
        if all(any(word in line.folded for line in lines) for word in wanted):
            matches[file.path] = max(lines, key=lambda line: sum(word in line.folded for word in wanted)).match
    return matches


def _files(folder: Path) -> list[_File]:
    """The conversations of a folder, the latest first."""
    files = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX):
                with suppress(OSError):
                    facts = entry.stat()
                    files.append(_File(facts.st_mtime_ns, folder / entry.name, facts.st_size))
    return sorted(files, reverse=True)


@lru_cache(MOST_KEPT)
def _said_in(file: _File) -> tuple[_Line, ...]:
    """All that was said in a conversation, the latest first. Nothing of what can't be read."""
    try:
        conversation = load_session(file.path)
    except (OSError, ValueError):
        return ()
    texts = [(0, f"{conversation.target or ''} {file.path.stem}"), (0, conversation.title or "")]
    for turn in conversation.tree:
        texts += [(turn.number, text) for text in (turn.question, turn.answer, turn.name)]
    lines = ((number, unicodedata.normalize("NFC", " ".join(text.split()))) for number, text in reversed(texts))
    return tuple(_Line(Match(number, line), line.casefold()) for number, line in lines if line)
