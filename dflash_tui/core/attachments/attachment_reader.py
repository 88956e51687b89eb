"""From a path to an attachment. What is no text to ask about is refused in words: folders, pipes and devices (which
might never end), binary, huge and unreadable files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

from ..failures import Failure
from ..platforms import NEVER_WAITING
from ..text.counted import counted
from .attachment import Attachment, Count, about_tokens, one_line

MAX_BYTES = 1024 * 1024
"""Most bytes of one file: more than the longest contexts hold."""
MAX_FILES = 64
"""Most files that go with one question."""
OBVIOUSLY = 4
"""Files that are guessed to take this many times the context are refused without being counted."""
_BINARY = (
    (b"%PDF-", "a PDF: save its text (pdftotext) and attach that"),
    (b"\x89PNG", "a picture, and this model reads text"),
    (b"\xff\xd8\xff", "a picture, and this model reads text"),
    (b"GIF8", "a picture, and this model reads text"),
    (b"PK\x03\x04", "an archive or an office document: attach the text in it"),
    (b"\x1f\x8b", "compressed: unpack it first"),
    (b"\x7fELF", "a program"),
)
_WIDE = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


class AttachmentError(Failure):
    """A file that can't go with a question. ``hint`` says what to do."""


class NoSuchFile(AttachmentError):
    """Raised when there is nothing at the path."""


def read_file(path: Path, name: str | None = None) -> Attachment:
    """Read the file at a path. ``name``: what it is called, if not by its path. Raises :class:`AttachmentError`."""
    shown = one_line(name or str(path))
    try:
        data = _read(Path(os.path.expanduser(path)), shown)
    except FileNotFoundError:
        raise NoSuchFile(f"There is no file {shown}.", "Correct the path, or leave the file out.") from None
    except (OSError, ValueError) as error:  # a NUL in the name, for one
        raise AttachmentError(f"{shown} can't be read: {_reason(error)}.", "Name a file that you may read.") from None
    return Attachment(shown, _decoded(data, shown))


def _read(path: Path, shown: str) -> bytes:
    _require_file(os.stat(path), shown)
    # What has taken the file's place since must not keep the program waiting.
    descriptor = os.open(path, os.O_RDONLY | NEVER_WAITING)
    with open(descriptor, "rb", buffering=0) as file:
        _require_file(os.fstat(descriptor), shown)
        data = bytearray()
        while len(data) <= MAX_BYTES and (piece := file.read(MAX_BYTES + 1 - len(data))):
            data += piece
    if len(data) > MAX_BYTES:
        raise _huge(shown, "more than 1 MB")
    return bytes(data)


def _require_file(status: os.stat_result, shown: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise AttachmentError(f"{shown} is a folder.", "Name the files in it that matter.")
    if not stat.S_ISREG(status.st_mode):
        raise AttachmentError(
            f"{shown} is no file but a pipe or a device.", "Save what comes out of it, and attach that."
        )
    if status.st_size > MAX_BYTES:
        raise _huge(shown, _size(status.st_size))


def _huge(shown: str, size: str) -> AttachmentError:
    return AttachmentError(
        f"{shown} is too large: {size}, and no context holds more than 1 MB.", "Attach a part of it."
    )


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def _decoded(data: bytes, shown: str) -> str:
    for head, what in _BINARY:
        if data.startswith(head):
            raise AttachmentError(f"{shown} is {what}.", "Attach text.")
    try:
        if coding := _WIDE.get(data[:2]):
            return data.decode(coding)
        if b"\0" in data:
            raise AttachmentError(f"{shown} is binary (byte {data.index(0)} is NUL).", "Attach text.")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AttachmentError(
            f"{shown} is no UTF-8 text (byte {error.start}).", "Convert it first, for example with iconv."
        ) from None


class AttachmentReader:
    """Reads a file once for as long as it is the same, with its tokens counted, and forgets what hasn't been asked for
    lately. From any thread."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._known: dict[tuple[str, str], tuple[tuple[int, int], Attachment]] = {}
        """The latest version of each file by path and name, with its time and size; the latest asked for last."""
        self._changing = Lock()

    def read(self, path: Path, name: str) -> Attachment:
        """Read a file as :func:`read_file` does, but only once for as long as it stays the same."""
        try:
            status = os.stat(os.path.expanduser(path))
        except (OSError, ValueError):
            return read_file(path, name)
        key, version = (str(path), name), (status.st_mtime_ns, status.st_size)
        with self._changing:
            known = self._known.get(key)
        file = known[1] if known is not None and known[0] == version else read_file(path, name)
        with self._changing:
            self._known.pop(key, None)
            self._known[key] = version, file
            while len(self._known) > MAX_FILES:
                del self._known[next(iter(self._known))]
        return file

    def counted(self, files: Sequence[Attachment], limit: int) -> tuple[Attachment, ...]:
        """Count the tokens of files that fit the context, as :func:`checked` does, and remember the counts."""
        done = checked(files, limit, self._count)
        by_content = {file.digest: file for file in done}
        with self._changing:
            for key, (version, file) in self._known.items():
                if (counted := by_content.get(file.digest)) is not None:
                    self._known[key] = version, replace(file, num_tokens=counted.num_tokens)
        return done


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        if error.errno == errno.ELOOP:
            return "its symbolic links lead in a circle"
        return (error.strerror or str(error)).lower()
    return "its name is no path"


def checked(files: Sequence[Attachment], limit: int, count: Count) -> tuple[Attachment, ...]:
    """The files with their tokens counted, each content once. Raises :class:`AttachmentError` for what no context of
    ``limit`` tokens (0: not known) holds."""
    different = list({file.digest: file for file in files}.values())
    if len(different) > MAX_FILES:
        raise AttachmentError(f"{len(different)} files are too many: {MAX_FILES} go with a question.", "Name fewer.")
    guessed = sum(about_tokens(file.text) for file in different)
    obvious = bool(limit) and guessed > OBVIOUSLY * limit  # counting a megabyte takes a second
    done = [
        file if obvious or file.num_tokens is not None else replace(file, num_tokens=count(file.text))
        for file in different
    ]
    total = sum(about_tokens(file.text) if file.num_tokens is None else file.num_tokens for file in done)
    if limit and total >= limit:
        what = done[0].name if len(done) == 1 else f"These {len(done)} files"
        verb = "has" if len(done) == 1 else "have"
        about = "about " if any(file.num_tokens is None for file in done) else ""
        raise AttachmentError(
            f"{what} {verb} {about}{counted(total, 'token')}, and the context holds {limit:,}.",
            "Attach a part of it, or make room with --context where the model takes more.",
        )
    return tuple(done)
