"""Every call to the operating system fails once, and for good, at each place where a conversation is written: what was
said before is there, and what was said meanwhile comes as soon as it can be written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.core.sessions.archive import survey
from dflash_tui.core.sessions.session_file import append, close, encode, open_whole, records_in
from dflash_tui.core.sessions.sessions import SUFFIX, SessionLog, append_title, load_session
from engine.events import EmittedToken, EngineReady, Step, TurnFinished
from support.events_for_tests import make_step
from tests.pace import only_in_ci

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
@pytest.mark.parametrize("lasting", [False, only_in_ci(True)], ids=["once", "for good"])
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
            assert {turn.reason for turn in load_session(log.path).tree} == {"stop"}, f"call {place}"
        elif not deleted:
            assert len("".join(each[2] for each in found)) >= before, f"call {place}: what was said before it is there"
        place += 1
    assert num_places > 20, "the calls were counted"


def test_what_is_added_is_added_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = SessionLog.create(tmp_path)
    answer(log, 1)
    log.close()
    whole = log.path.read_bytes()
    descriptor = open_whole(log.path)
    assert log.path.read_bytes() == whole, "to open it again takes nothing away"
    real = os.write
    lengths = iter((3, None))

    def write(number: int, data: bytes) -> int:
        if (length := next(lengths)) is None:
            broken(real, ())
        return real(number, bytes(data)[:length])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError):
        append(descriptor, b"{}\n{}\n")
    close(descriptor, log.path)
    assert log.path.read_bytes() == whole


WRITER = """
import os
import sys
from dataclasses import replace
from pathlib import Path
from dflash_tui.core.sessions.sessions import SessionLog
from engine.events import TurnFinished, TurnStarted
from support.events_for_tests import make_step
log = SessionLog(Path(sys.argv[1]))
for turn in range(1, 1000):
    log.user(turn, "q")
    log.record(TurnStarted(turn, 3, 0, {}))
    for index in range(40):
        step = make_step(2, 5, index=index, time=index / 10, text=f"{index} ")
        log.record(replace(step, turn=turn))
        os.write(1, f"{turn} {index}\\n".encode())  # whole or not at all, which print promises nobody
    log.record(TurnFinished(turn, "stop", ""))
"""


@pytest.mark.parametrize("after", [1, 40, 137])
def test_a_kill_loses_at_most_the_round_in_flight(tmp_path: Path, after: int) -> None:
    """A real one: what the program said that it wrote is there, in its order, whatever it was about to do."""
    path = tmp_path / "x.jsonl"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        told = [tuple(map(int, program.stdout.readline().split())) for _ in range(after)]
        program.kill()
        told += [tuple(map(int, line.split())) for line in program.stdout]
    rounds = [(turn.number, step.index) for turn in load_session(path).tree for step in list(turn.rounds)]
    assert rounds[: len(told)] == told and len(rounds) <= len(told) + 1


@given(st.data())
def test_a_kill_while_blocks_take_the_place_of_rounds_loses_nothing(data: st.DataObject) -> None:
    """Between any two calls to the operating system, and within any of them."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        log = SessionLog(Path(folder) / "x.jsonl")
        log.user(1, "q")
        steps = [make_step(2, 5, index=index, time=index / 10, text=f"{index} ") for index in range(40)]
        for step in steps[:-1]:
            log.record(step)
        log.title("between")
        log.record(steps[-1])
        left = data.draw(st.integers(0, 12_000))

        def dying(descriptor: int, content: bytes) -> int:
            nonlocal left
            written = WRITE(descriptor, bytes(content)[:left])
            left -= written
            if left <= 0:
                raise Killed
            return written

        patch.setattr(os, "write", dying)
        with suppress(Killed):
            log.record(TurnFinished(1, "stop", "".join(token.text for step in steps for token in step.emitted)))
        conversation = load_session(log.path)
        assert list(conversation.turns[0].rounds) == steps and conversation.title == "between"
        patch.undo()
        log.close()


class Killed(BaseException):
    """Nothing catches it, as nothing does SIGKILL."""


WRITE = os.write


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
