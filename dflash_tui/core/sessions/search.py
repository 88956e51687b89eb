"""Search over everything that was ever said: questions, answers and names, as the files of the conversations hold
them. What was read stays in memory as long as its file is the same."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple

from ..files.places import sessions_directory
from ..text.harmless import without_surrogates
from .archive import SessionSummary, survey
from .sessions import SUFFIX, load_session

MOST = 500
"""How many hits are given at most."""
MOST_KEPT = 4096
"""How many conversations stay in memory."""
_WORD = re.compile(r'"[^"]+"|\S+')

HitField = Literal["question", "answer", "name"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A place where all the words were said."""

    path: Path
    name: str
    """The conversation's name."""
    turn: int
    """The turn's number; 0 for the name of the whole conversation."""
    part: HitField
    text: str


class _Said(NamedTuple):
    turn: int
    part: HitField
    text: str


class _File(NamedTuple):
    changed_ns: int
    path: Path
    size: int


class Search:
    """Everything said in the conversations of a folder."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or sessions_directory()
        self._read: list[_File] = []

    def find(self, words: str) -> Iterator[Hit]:
        """The places where all of ``words`` were said, those of the latest conversation first. Words may be cut short;
        “several in quotes” stand as they are."""
        return _found(_files(self._directory), words)

    def known(self, words: str) -> Iterator[Hit]:
        """The hits in what :meth:`read` has read so far."""
        return _found(tuple(self._read), words)

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
    hit_paths = {hit.path for hit in Search(directory).find(words)} if words else set()
    readable, unreadable = survey(directory)
    return [each for each in readable if each.matches(words) or each.path in hit_paths], unreadable


def _wanted(words: str) -> list[str]:
    """The words, folded; quotes hold several together."""
    wanted = (match.strip('"').casefold() for match in _WORD.findall(words))
    return [word for word in (" ".join(each.replace('"', " ").split()) for each in wanted) if word]


def _found(files: Iterable[_File], words: str) -> Iterator[Hit]:
    wanted = _wanted(words)
    return islice(chain.from_iterable(_hits(file, wanted) for file in files), MOST if wanted else 0)


def _hits(file: _File, wanted: list[str]) -> Iterator[Hit]:
    title, texts = _said_in(file)
    for each in texts:
        text = each.text.casefold()
        if all(word in text for word in wanted):
            yield Hit(file.path, title, each.turn, each.part, each.text)


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
def _said_in(file: _File) -> tuple[str, tuple[_Said, ...]]:
    """A conversation's name, and all that was said in it, the latest first. Nothing of what can't be read."""
    try:
        conversation = load_session(file.path)
    except (OSError, ValueError):
        return "", ()
    texts: list[_Said] = []
    for turn in conversation.tree:
        texts += [_Said(turn.number, "question", turn.question), _Said(turn.number, "answer", turn.answer)]
        texts.append(_Said(turn.number, "name", turn.name))
    texts.append(_Said(0, "name", conversation.title or ""))
    said = tuple(each._replace(text=without_surrogates(each.text)) for each in reversed(texts) if each.text)
    return without_surrogates(conversation.name), said
