"""Waiting for another program that fetches the same small file."""

from __future__ import annotations

import fcntl
from errno import ENOSYS
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock, Timeout

from engine.hub import blobs


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "TIMEOUT", 0.01)


def test_a_program_that_holds_a_lock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, look = FileLock(tmp_path / "lock"), blobs._is_held
    found = []

    def looked(path: Path) -> bool:
        found.append(look(path))
        if len(found) == 3:
            lock.release()
        return found[-1]

    monkeypatch.setattr(blobs, "_is_held", looked)
    lock.acquire()
    blobs._wait_for(tmp_path / "lock")
    assert len(found) >= 3 and all(found[:3])


@pytest.mark.filterwarnings("ignore:flock not supported")
def test_where_locks_are_files_one_that_was_left_behind_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: Any) -> None:
        raise OSError(ENOSYS, "not here")

    monkeypatch.setattr(fcntl, "flock", flock)
    (tmp_path / "lock").touch()
    with pytest.raises(Timeout):
        blobs._wait_for(tmp_path / "lock")
