"""No test writes outside its own folders: what its process opens for writing, makes, renames or removes elsewhere is
refused, and the test fails whatever became of the refusal. Programs that tests start aren't watched."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ONE, SECOND, BOTH = slice(1), slice(1, 2), slice(2)
CHANGED = {
    "os.mkdir": ONE, "os.remove": ONE, "os.rmdir": ONE, "os.symlink": SECOND, "os.link": SECOND, "os.rename": BOTH,
}  # fmt: skip
"""Audit events, and which of their arguments name what is changed."""
CACHES = {"__pycache__", ".pytest_cache", ".hypothesis"}
"""What Python and its tools keep for themselves, wherever that is."""


class WriteGuard:
    """A plugin. Own folders are those that ``tmp_path`` and :mod:`tempfile` give, which lie in one."""

    def __init__(self) -> None:
        own = (tempfile.gettempdir(), "/dev", "/proc")
        self.own = tuple(os.path.join(os.path.realpath(folder), "") for folder in own)
        self.watching = False
        self.written: list[str] = []
        sys.addaudithook(self._hear)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        self.written.clear()
        self.watching = True
        try:
            result = yield
        finally:
            self.watching = False
        if self.written:
            pytest.fail(f"wrote outside its own folders: {', '.join(self.written)}", pytrace=False)
        return result

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.watching:
            return
        if event == "open":
            path, _, flags = arguments
            changed = (path,) if (flags or 0) & WRITES else ()
        elif arguments[-1:] == (-1,):  # no folder that an open file stands for
            changed = arguments[CHANGED.get(event, slice(0))]
        else:
            return
        for path in changed:
            if not isinstance(path, int) and not self._is_own(os.path.abspath(os.fsdecode(path))):
                self.written.append(os.fsdecode(path))
                raise PermissionError(13, "a test writes outside its own folders", path)

    def _is_own(self, path: str) -> bool:
        return bool(CACHES.intersection(Path(path).parts)) or any(
            os.path.join(each, "").startswith(self.own) for each in (path, os.path.realpath(path))
        )
