"""Write a code block to a file: verbatim, inside one directory, and never over something else."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from uuid import uuid4

from ..failures import Failure
from ..text.fences import CodeBlock

_MAX_COPIES = 1000
_UNUSUAL, _LONGEST = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"|?*{}\ud800-\udfff]'), 60
"""Characters that a file's name can't hold on every system, and the most characters that its parts are left."""
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class SavingError(Failure):
    """A file that was not saved."""


def save_block(block: CodeBlock, directory: Path, *, filename: str | None = None) -> Path:
    """Writes ``block.content`` as UTF-8 below ``directory``, created if missing; returns the path. Named ``filename``,
    the block's own name or ``block-N.txt``; equal files are kept, other takers of the name lead to ``name-2`` and so
    on. Where the block's own name, which a model chose, can't be had, a plain one is made of it. :class:`SavingError`
    for a ``filename`` outside the directory or a failed write."""
    if filename is not None:
        return save_text(block.content, directory, filename)
    first: SavingError | None = None
    for name in _names_for(block):
        try:
            return save_text(block.content, directory, name)
        except SavingError as error:
            first = first or error
    assert first is not None
    raise first


def _names_for(block: CodeBlock) -> Iterator[str]:
    """The block's own name, the last part of it without what names don't hold everywhere, and a number."""
    number = f"block-{block.number}"
    if block.filename:
        home = block.filename.startswith("~")
        if not home:
            yield block.filename
        last = re.split(r"[/\\]", block.filename)[-1]
        stem, dot, ending = _UNUSUAL.sub("", last).rpartition(".")
        if stem := stem.strip(". ")[:_LONGEST]:
            yield f"{stem}{dot}{ending[:_LONGEST]}"
        elif ending:
            yield f"{number}{dot or '-'}{ending[:_LONGEST]}"
    yield f"{number}.txt"


def save_text(text: str, directory: Path, filename: str) -> Path:
    """Write ``text`` as :func:`save_block` writes a block."""
    # Text that came back from JSON may hold half a surrogate pair, which UTF-8 can't; everything else is verbatim.
    data = text.encode("utf-8", errors="replace")
    try:
        wanted = _inside(directory, filename)
        wanted.parent.mkdir(parents=True, exist_ok=True)
        with _temporary_file(wanted, data) as temporary:
            return _move_into_place(temporary, wanted, data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SavingError(
            f"{directory / filename} was not written: {reason}.",
            "Choose another folder, or make room there.",
        ) from error


def _inside(directory: Path, name: str) -> Path:
    """``directory / name``, refusing every name that would end up elsewhere, also through a symbolic link."""
    relative = PurePosixPath(name.replace("\\", "/"))
    has_drive = bool(relative.parts) and relative.parts[0].endswith(":")
    if relative.is_absolute() or has_drive or ".." in relative.parts or not relative.name or not name.isprintable():
        raise SavingError(
            f"{name!r} is not a file name inside {directory}.",
            "Give a plain name, such as index.html.",
        )
    path = directory / relative
    if not Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(directory)):
        raise SavingError(
            f"{path} leads out of {directory} through a symbolic link.",
            "Remove the link, or choose another folder.",
        )
    return path


@contextlib.contextmanager
def _temporary_file(wanted: Path, data: bytes) -> Iterator[Path]:
    temporary = wanted.with_name(f".{uuid4().hex}.part")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _move_into_place(temporary: Path, wanted: Path, data: bytes) -> Path:
    for candidate in _candidates(wanted):
        if _holds(candidate, data):
            return candidate
        with contextlib.suppress(FileExistsError):
            _link(temporary, candidate, data)
            return candidate
    raise OSError(errno.EEXIST, f"{_MAX_COPIES} copies exist already")


def _candidates(wanted: Path) -> Iterator[Path]:
    yield wanted
    for copy in range(2, _MAX_COPIES + 1):
        yield wanted.with_name(f"{wanted.stem}-{copy}{wanted.suffix}")


def _holds(path: Path, data: bytes) -> bool:
    """Whether a regular file (not a link to one, which may lead anywhere) already has these bytes."""
    return path.is_file() and not path.is_symlink() and path.stat().st_size == len(data) and path.read_bytes() == data


def _link(temporary: Path, target: Path, data: bytes) -> None:
    """Name the finished file. ``FileExistsError`` if the name is taken, even now: a hard link never replaces."""
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        with open(target, "xb") as file:
            file.write(data)
