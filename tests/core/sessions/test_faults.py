"""Every call to the operating system fails once, and for good, at each place where a conversation is written: what was
said before is there, and what was said meanwhile comes as soon as it can be written."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.core.sessions.archive import survey
from dflash_tui.core.sessions.session_file import encode, records_in
from dflash_tui.core.sessions.sessions import SUFFIX, SessionLog, append_title, load_session
from engine.events import EmittedToken, EngineReady, Step, TurnFinished

CALLS = ("open", "write", "read", "lseek", "ftruncate", "fstat")
READY = EngineReady("target", "drafter", "cpu", "float32", 16, 4096, 1.5)
Fault = Callable[[Callable[..., Any], tuple[Any, ...]], Any]


def broken(real: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def short(real: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Does a part of what was asked for, as a call may."""
    if real.__name__ == "write":
        return real(arguments[0], bytes(arguments[1])[: max(len(arguments[1]) // 3, 1)])
    return real(arguments[0], min(arguments[1], 7)) if real.__name__ == "read" else real(*arguments)


def answer(log: SessionLog, turn: int) -> None:
    log.user(turn, f"question {turn}")
    for index, piece in enumerate(("one ", "two ", "three")):
        log.record(Step(turn, index, 0.1, (), 0, (EmittedToken(1, piece, "accepted"),), 1, 0.0, 1.0, 1.0, 10, 16, 0.0))
    log.record(TurnFinished(turn, "stop", "one two three", ""))


def converse(log: SessionLog, deleted: bool) -> None:
    """Two questions, in a file that somebody may delete behind the first; and a third after it was opened again."""
    log.record(READY)
    answer(log, 1)
    if deleted:
        log.path.unlink(missing_ok=True)
    answer(log, 2)
    log.close()
    again = SessionLog.resume(log.path)
    answer(again, 3)
    again.close()
    append_title(log.path, "three")


def said(path: Path) -> list[tuple[int, str, str]]:
    return [(turn.number, turn.question, turn.answer) for turn in load_session(path).tree]


EVERYTHING = [(turn, f"question {turn}", "one two three") for turn in (1, 2, 3)]


@pytest.mark.parametrize("deleted", [False, True], ids=["there", "deleted"])
@pytest.mark.parametrize("fault", [broken, short])
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for good"])
def test_what_was_said_before_a_fault_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, lasting: bool, deleted: bool
) -> None:
    real = {name: getattr(os, name) for name in CALLS}
    place, count, before = 0, 0, 0
    log: SessionLog

    def call(name: str) -> Callable[..., Any]:
        def faulty(*arguments: Any, **options: Any) -> Any:
            nonlocal count, before
            ours = name != "open" or str(arguments[0]).endswith(SUFFIX)
            count += ours
            if not ours or (count <= place if lasting else count != place + 1):
                return real[name](*arguments, **options)
            if count == place + 1:
                with suppress(OSError, ValueError):
                    before = len([each for each in said(log.path) if each[2]])
            return fault(real[name], arguments)

        return faulty

    num_places = 0
    while place == 0 or place < num_places:
        count = before = 0
        log = SessionLog.create(tmp_path / f"{fault.__name__}{place}")
        with monkeypatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, call(name))
            told = ""
            try:
                converse(log, deleted)
            except OSError as error:  # the file could not be opened again, which the user is told
                told = str(error)
        num_places = max(num_places, count)
        found = said(log.path) if log.path.exists() and log.path.stat().st_size else []
        for index, ((*question, answered), (*asked, whole)) in enumerate(zip(found, EVERYTHING, strict=False)):
            last = index == len(found) - 1
            right = whole.startswith(answered) if last else answered == whole
            assert question == asked and right, f"call {place}: nothing is torn, doubled or out of order"
        if fault is short or (not lasting and not told):
            assert found == EVERYTHING, f"call {place} of {num_places}"
        elif not deleted:
            assert len("".join(each[2] for each in found)) >= before, f"call {place}: what was said before it is there"
        place += 1
    assert num_places > 20, "the calls were counted"


def test_two_records_in_one_line_are_two() -> None:
    """As where a full disk has cost a line its end."""
    title, user = {"type": "title", "title": "é\n"}, {"type": "user", "turn": 1, "text": '{"type":"'}
    glued = encode([title]).strip() + encode([user]).strip()
    assert records_in(glued) == ([title, user], True)
    torn = encode([user]).strip()
    for cut in range(1, len(torn)):
        found, whole = records_in(torn[:cut] + encode([title]).strip())
        assert title in found and not whole, f"cut at {cut}: {found}"
    assert records_in(b'"a text""another"') == (["a text", "another"], True)
    assert records_in(b"nonsense") == ([], False)
    assert records_in(b'{"type":"a","b":' * 20_000)[1] is False


def test_a_list_says_why_others_are_not_in_it(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    answer(log, 1)
    log.close()
    newer = '{"type":"session","version":99,"created":""}\n'
    for name, content in (("empty", ""), ("strange", "hello\n"), ("newer", newer)):
        (tmp_path / f"{name}{SUFFIX}").write_text(content)
    (tmp_path / f"folder{SUFFIX}").mkdir()
    found, unreadable = survey(tmp_path)
    assert [each.path for each in found] == [log.path] and len(unreadable) == 4
    assert "newer dflash-chat" in " ".join(unreadable) and "is a directory" in " ".join(unreadable)
