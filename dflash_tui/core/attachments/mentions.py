"""``@path`` in a question, as it is typed, pasted or dropped: ``@notes.txt``, ``@"two words.txt"``, ``@two\\ words``. A
plain @ is written @@ where a file has that name."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .attachment import Attachment
from .attachment_reader import MAX_FILES, read_file

_MENTION = re.compile(
    r"""(?<![^\s(\[{"'])@(?!@)(?:"(?P<quoted>(?:[^"\\\n]|\\.)+)"|(?P<bare>(?:\\.|[^\s"'\\])(?:\\.|[^\s\\])*))"""
)
_BEGUN = re.compile(r"""(?:^|(?<=[\s(\[{]))@(?!@)(?:"(?P<quoted>(?:[^"\\\n]|\\.)*)|(?P<bare>(?:\\.|[^\s"\\])*))$""")
_PLAIN_AT = re.compile(r"""(?<![^\s(\[{"'])@@(?P<path>\S+)""")
_ESCAPE = re.compile(r"\\(.)")
_TRAILING = ".,;:!?)]}'\""
_PATHS = ("/", "./", "../", "~/")
"""What begins like this can only be meant as a path."""
LISTED = 2000
"""Entries of a folder that are looked at for completion."""
OFFERED = 200
LONGEST, MOST = 4096, 1000
"""Characters of a path, and words behind an @ that are looked at."""
_PLAIN = re.compile(r"[\w./~+-]+")


@dataclass(frozen=True, slots=True)
class Mention:
    """A path in a question, unquoted, and where it stands there."""

    path: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Mentioned:
    """The files of a question."""

    files: tuple[Attachment, ...]
    strange: tuple[str, ...] = ()
    """Words behind an @ that look like a file's name and are none: they went as they stand."""


def mentions(text: str) -> list[Mention]:
    """The words with ``@`` that are paths of something that is there, or can only be meant as paths."""
    return [mention for mention in _written(text) if _exists(mention.path) or mention.path.startswith(_PATHS)]


Read = Callable[[Path, str], Attachment]


def attach(text: str, read: Read = read_file) -> Mentioned:
    """Read what ``text`` mentions. Raises ``AttachmentError``."""
    paths = dict.fromkeys(mention.path for mention in mentions(text))
    files = tuple(read(Path(path), path) for path in islice(paths, MAX_FILES + 1))
    strange = [
        each.path for each in _written(text) if each.path not in paths and re.fullmatch(r"[\w./-]+\.\w{1,4}", each.path)
    ]
    return Mentioned(files, tuple(strange))


def as_asked(text: str) -> str:
    """The question as it was meant: an ``@@`` that kept a path from being attached is an @ again."""

    def plain(match: re.Match[str]) -> str:
        path = match["path"]
        return match[0][1:] if _exists(path) or _exists(path.rstrip(_TRAILING)) or path.startswith(_PATHS) else match[0]

    return _PLAIN_AT.sub(plain, text)


def _written(text: str) -> Iterator[Mention]:
    for match in islice(_MENTION.finditer(text), MOST):
        if match.end() - match.start() > LONGEST:
            continue
        if (quoted := match["quoted"]) is not None:
            yield Mention(_ESCAPE.sub(r"\1", quoted), match.start(), match.end())
            continue
        bare, stop = match["bare"], match.end()
        # The point behind a name ends the sentence, unless a file is called so.
        while bare[-1] in _TRAILING and len(bare) > 1 and not _exists(_ESCAPE.sub(r"\1", bare)):
            bare, stop = bare[:-1], stop - 1
        yield Mention(_ESCAPE.sub(r"\1", bare), match.start(), stop)


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(os.path.expanduser(path))
    except ValueError:  # a NUL in it
        return False


def mention_of(path: str) -> str:
    """How a path is written in a question."""
    if _PLAIN.fullmatch(path):
        return f"@{path}"
    return '@"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def pasted_paths(text: str) -> list[str]:
    """The files that a terminal pasted when they were dropped on it, or that were copied in a file manager: whole paths
    and nothing else, quoted, escaped or as URLs. Empty for any other text."""
    if len(text) > 64 * 1024 or not text.strip().startswith(("/", "~/", "'/", '"/', "file://")):
        return []
    try:
        words = shlex.split(text.strip())
    except ValueError:
        return []
    paths = [unquote(urlsplit(word).path) if word.startswith("file://") else word for word in words]
    whole = all(
        path.startswith(("/", "~/")) and "\n" not in path and os.path.isfile(os.path.expanduser(path)) for path in paths
    )
    return paths if paths and len(paths) <= MAX_FILES and whole else []


def completions(text: str) -> list[str]:
    """What the prompt could become where its last word begins with @: folders first. Hidden files only if asked for."""
    begun = _BEGUN.search(text)
    if begun is None:
        return []
    typed = _ESCAPE.sub(r"\1", begun["quoted"] if begun["quoted"] is not None else begun["bare"] or "")
    parent, _, stem = typed.rpartition("/")
    head = f"{parent}/" if parent or typed.startswith("/") else ""
    candidates = sorted(
        _entries(os.path.expanduser(head or "."), stem), key=lambda entry: (not entry[1], entry[0].casefold())
    )[:OFFERED]
    before = text[: begun.start()]
    return [
        f"{before}{_unfinished(head + name)}" if is_folder else f"{before}{mention_of(head + name)} "
        for name, is_folder in candidates
    ]


def _unfinished(folder: str) -> str:
    """How a folder is mentioned while its path is still being typed: without a closing quote."""
    return mention_of(f"{folder}/").removesuffix('"')


def _entries(folder: str, stem: str) -> Iterator[tuple[str, bool]]:
    """Names that begin like ``stem``, and whether they are folders."""
    try:
        listed = _listed(folder, os.stat(folder).st_mtime_ns)
    except (OSError, ValueError, RuntimeError):
        return
    for name, is_folder in listed:
        if name.casefold().startswith(stem.casefold()) and (stem.startswith(".") or not name.startswith(".")):
            yield name, is_folder


@lru_cache(maxsize=8)
def _listed(folder: str, _changed: int) -> tuple[tuple[str, bool], ...]:
    """A folder's entries, read once for all keys that are pressed while nothing in it changes."""
    with os.scandir(folder) as entries:
        return tuple((entry.name, entry.is_dir()) for entry in islice(entries, LISTED) if "\n" not in entry.name)
