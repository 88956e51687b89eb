"""Search over everything that was ever said: questions, answers and names.

The files of the conversations are the truth. Beside them lies an index (SQLite's FTS5), which takes in what has changed
since it was last asked. It may be deleted at any time, is made anew when it is damaged or another version's, and where
it can't be written, what it lacks is read from the files themselves."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from ..files.places import sessions_directory
from ..platforms import entries_of
from ..text.harmless import without_surrogates
from .sessions import SUFFIX, load_session

INDEX_NAME = "search.sqlite"
VERSION = 1
BATCH = 64
"""How many conversations at most are taken in before the hits in them are given."""
MOST = 500
"""How many hits are given at most."""
STRIDE = 4096
"""Row numbers that a conversation has for itself; more pieces than that share the last."""
JOINER = "\u2060"
"""Stands in the index between Chinese, Japanese and Korean characters, each of which is a word of its own there."""
_WIDE = re.compile("(?<=[\u3041-\u30fa\u4e00-\u9fff\uac00-\ud7a3])(?=[\u3041-\u30fa\u4e00-\u9fff\uac00-\ud7a3])")
_WORD = re.compile(r'"[^"]+"|\S+')

HitField = Literal["question", "answer", "name"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A place where all the words were said."""

    path: Path
    name: str
    """The conversation's name."""
    changed: float
    """When something was last said in it, in seconds since the epoch."""
    turn: int
    """The turn's number; 0 for the name of the whole conversation."""
    part: HitField
    text: str

    @property
    def id(self) -> str:
        return self.path.stem


@dataclass(frozen=True, slots=True)
class _Said:
    turn: int
    part: HitField
    text: str


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    size: int
    changed_ns: int

    @property
    def changed(self) -> float:
        return self.changed_ns / 1e9


_Facts = tuple[int, str, int]
"""What a file was like: when it was changed, in nanoseconds since the epoch, its conversation's name, its bytes."""


class Search:
    """Everything said in the conversations of a folder. One thread at a time; :meth:`close` when done."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or sessions_directory()
        self._path = self.directory / INDEX_NAME
        self._writes = True
        self._database = self._open()

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def find(self, words: str, most: int = MOST) -> Iterator[Hit]:
        """The places where all of ``words`` were said: the latest of the conversations in the index first, then those
        that it lacks, which it takes in. Words may be cut short; “several in quotes” stand as they are."""
        wanted = _wanted(words)
        return islice(chain(self._fresh(wanted), self._found_missing(wanted)), most if wanted else 0)

    def _fresh(self, wanted: list[str]) -> Iterator[Hit]:
        """The hits in conversations that are as the index knows them."""
        same: dict[Path, bool] = {}
        for hit, file in self._ask(wanted):
            if file.path not in same:
                same[file.path] = _file(file.path) == file
            if same[file.path]:
                yield hit

    def _found_missing(self, wanted: list[str]) -> Iterator[Hit]:
        """The hits in conversations that the index lacks, which it takes in meanwhile."""
        for files in self._batches(self._missing()):
            left = self._take_in(files)
            for file in files:
                if file not in left:
                    yield from (hit for hit, _ in self._ask(wanted, file.path.name))
            yield from _read_through(left, wanted)

    def known(self, words: str, most: int = MOST) -> list[Hit]:
        """The hits in what the index knows already: quick at any number of conversations."""
        return [hit for hit, _ in islice(self._ask(_wanted(words)), most)]

    def update(self) -> Iterator[int]:
        """Take in what has changed, a batch at a time; gives how many conversations are left to do."""
        missing = self._missing()
        left = len(missing)
        for files in self._batches(missing):
            self._take_in(files)
            left -= len(files)
            yield left

    def num_missing(self) -> int:
        """How many conversations it does not know as they are now."""
        return len(self._missing())

    # The index

    def _open(self) -> sqlite3.Connection | None:
        """Open the index, made if need be; None where that can't be done."""
        for _ in range(2):
            try:
                return self._opened()
            except sqlite3.OperationalError as error:
                if "locked" in str(error) or not self.directory.is_dir():
                    return None
                if self._writes and not os.access(self.directory, os.W_OK):
                    self._writes = False
                    continue
                self._discard()
            except sqlite3.DatabaseError:
                self._discard()
        return None

    def _opened(self) -> sqlite3.Connection:
        if not self._writes:
            address = f"{self._path.absolute().as_uri()}?mode=ro&immutable=1"
            database = sqlite3.connect(address, uri=True, check_same_thread=False)
        else:
            database = sqlite3.connect(self._path, timeout=1.0, check_same_thread=False, isolation_level=None)
        try:
            if self._writes:
                self._prepare(database)
            database.execute("SELECT count(*) FROM files").fetchone()
            database.execute("SELECT rowid FROM said LIMIT 1").fetchone()
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        database.execute("PRAGMA synchronous = OFF")  # what a crash costs is made anew
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version == VERSION:
            return
        if version:
            raise sqlite3.DatabaseError("another version's")
        with suppress(OSError):
            self._path.chmod(0o600)
        database.executescript(
            "BEGIN IMMEDIATE;"
            "CREATE TABLE IF NOT EXISTS files (name TEXT PRIMARY KEY, size INTEGER, changed INTEGER, title TEXT,"
            " first INTEGER UNIQUE, count INTEGER);"
            "CREATE VIRTUAL TABLE IF NOT EXISTS said USING fts5 (text, turn UNINDEXED, part UNINDEXED, prefix='2 3');"
            f"PRAGMA user_version = {VERSION};"
            "COMMIT;"
        )

    def _discard(self) -> None:
        """Damaged: made anew."""
        for suffix in ("", "-journal"):
            with suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink()

    def _broken(self) -> None:
        """The index failed while it was used: what is left of this search reads the files."""
        self.close()
        if self._writes:
            self._discard()

    # What it knows, and what it lacks

    def _missing(self) -> list[_Facts]:
        """The conversations that the index doesn't hold as they are now, the latest first. It forgets deleted ones."""
        known: dict[str, _Facts] = {}
        if self._database is not None:
            try:
                rows = self._database.execute("SELECT changed, name, size FROM files")
                known = {facts[1]: facts for facts in rows}
            except sqlite3.OperationalError:
                pass  # another window writes to it
            except sqlite3.DatabaseError:
                self._broken()
        lacking = [facts for facts in _files(self.directory) if known.pop(facts[1], None) != facts]
        if known:
            with suppress(sqlite3.Error):  # read-only, or another window writes to it
                self._forget(known)
        return sorted(lacking, reverse=True)

    def _batches(self, missing: list[_Facts]) -> Iterator[list[_File]]:
        """Yields the files in batches that grow from 2 to ``BATCH``: somebody waits for the first hit."""
        start, size = 0, 2
        while start < len(missing):
            yield [_File(self.directory / name, size, changed) for changed, name, size in missing[start : start + size]]
            start, size = start + size, min(2 * size, BATCH)

    def _forget(self, names: Iterable[str]) -> None:
        if self._database is None or not self._writes:
            return
        for name in names:
            row = self._database.execute("SELECT first, count FROM files WHERE name = ?", (name,)).fetchone()
            if row is not None:
                self._database.execute("DELETE FROM said WHERE rowid BETWEEN ? AND ?", (row[0], row[0] + row[1] - 1))
                self._database.execute("DELETE FROM files WHERE name = ?", (name,))

    def _take_in(self, files: list[_File]) -> list[_File]:
        """Put conversations into the index; returns those that could not be."""
        if self._database is None or not self._writes or not files:
            return files
        try:
            self._database.execute("BEGIN IMMEDIATE")
            for file in files:
                self._forget([file.path.name])
                title, texts = _read(file.path)
                self._store(file, title, texts)
            self._database.execute("COMMIT")
        except sqlite3.OperationalError:  # locked, or the disk is full
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
            return files
        except sqlite3.DatabaseError:
            self._broken()
            return files
        return []

    def _store(self, file: _File, title: str, texts: list[_Said]) -> None:
        """Row numbers follow the time, so that the latest are found first without sorting."""
        database = self._database
        assert database is not None
        first = file.changed_ns // 1_000_000_000 * STRIDE * STRIDE
        while database.execute("SELECT 1 FROM files WHERE first = ?", (first,)).fetchone():
            first += STRIDE
        rows = texts[: STRIDE - 1]
        if rest := texts[STRIDE - 1 :]:
            rows.append(_Said(rest[0].turn, rest[0].part, "\n".join(each.text for each in rest)))
        database.executemany(
            "INSERT INTO said (rowid, text, turn, part) VALUES (?, ?, ?, ?)",
            ((first + index, _WIDE.sub(JOINER, each.text), each.turn, each.part) for index, each in enumerate(rows)),
        )
        facts = (file.path.name, file.size, file.changed_ns, title, first, len(rows))
        database.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?)", facts)

    def _ask(self, wanted: list[str], name: str | None = None) -> Iterator[tuple[Hit, _File]]:
        """Yields the hits that the index has, the latest first. ``name``: only in this file."""
        if self._database is None or not wanted:
            return
        query = " ".join(f'"{_WIDE.sub(" ", word)}"*' for word in wanted)
        try:
            first, behind = self._rows_of(name)
            rows = self._database.execute(
                "SELECT rowid, text, turn, part FROM said WHERE said MATCH ? AND rowid >= ? AND rowid < ?"
                " ORDER BY rowid DESC",
                (query, first, behind),
            )
            for row, text, turn, which in rows:
                facts = "SELECT name, size, changed, title FROM files WHERE first <= ? ORDER BY first DESC LIMIT 1"
                if (row_facts := self._database.execute(facts, (row,)).fetchone()) is not None:
                    file = _File(self.directory / row_facts[0], row_facts[1], row_facts[2])
                    yield Hit(file.path, row_facts[3], file.changed, turn, which, text.replace(JOINER, "")), file
        except sqlite3.OperationalError:
            return
        except sqlite3.DatabaseError:
            self._broken()

    def _rows_of(self, name: str | None) -> tuple[int, int]:
        """The first row that the index has of file ``name``, and the row behind its last: (0, 0) for a file that it
        doesn't have. Without a name, those of all files together."""
        assert self._database is not None
        if name is None:
            return 0, 2**62
        row = self._database.execute("SELECT first, first + count FROM files WHERE name = ?", (name,)).fetchone()
        return row if row is not None else (0, 0)


def excerpt(text: str, words: str, length: int) -> tuple[str, list[tuple[int, int]]]:
    """About ``length`` characters of ``text`` on one line, around the first of ``words``, and where words stand in
    it."""
    wanted = [word for word in _wanted(words) if word]
    line = " ".join(text.split())
    low = line.casefold()
    first = min((word_start for word in wanted if (word_start := low.find(word)) >= 0), default=0)
    start = max(min(first - length // 3, len(line) - length), 0)
    if start:
        start = line.rfind(" ", start - 20, start + 1) + 1 or start
    cut = line[start : start + length]
    shown = f"{'…' if start else ''}{cut}{'…' if start + length < len(line) else ''}"
    marks = [match.span() for word in wanted for match in re.finditer(re.escape(word), shown.casefold())]
    return shown, sorted(marks)


def _wanted(words: str) -> list[str]:
    """The words, folded; quotes hold several together."""
    wanted = (match.strip('"').casefold() for match in _WORD.findall(words))
    return [word for word in (" ".join(each.replace('"', " ").split()) for each in wanted) if word]


def _file(path: Path) -> _File | None:
    """What the file is like now; None where it is gone."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return _File(path, facts.st_size, facts.st_mtime_ns)


def _files(folder: Path) -> Iterator[_Facts]:
    """Ten thousand of them come within a blink: no more is done for each than has to be."""
    with suppress(OSError), entries_of(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX):
                try:
                    facts = entry.stat()
                except OSError:
                    continue
                yield facts.st_mtime_ns, entry.name, facts.st_size


def _read(path: Path) -> tuple[str, list[_Said]]:
    """A conversation's name, and all that was said in it, the latest first. Nothing of what can't be read."""
    try:
        conversation = load_session(path)
    except (OSError, ValueError):
        return "", []
    texts: list[_Said] = []
    for turn in conversation.tree:
        texts += [_Said(turn.number, "question", turn.question), _Said(turn.number, "answer", turn.answer)]
        if turn.name:
            texts.append(_Said(turn.number, "name", turn.name))
    if conversation.title:
        texts.append(_Said(0, "name", conversation.title))
    texts = [replace(each, text=without_surrogates(each.text)) for each in texts if each.text]
    return without_surrogates(conversation.name), texts


def _read_through(files: Iterable[_File], wanted: list[str]) -> Iterator[Hit]:
    """Yields the hits in these files, read without an index."""
    for file in files:
        title, texts = _read(file.path)
        for each in reversed(texts):
            text = each.text.casefold()
            if all(word in text for word in wanted):
                yield Hit(file.path, title, file.changed, each.turn, each.part, each.text)
