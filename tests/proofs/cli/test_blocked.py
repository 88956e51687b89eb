"""Streams that nobody reads, closes or writes to: --timeout, SIGTERM and Ctrl+C work all the same; words say why."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from dflash_tui.cli.headless.output import StandardOutput
from dflash_tui.cli.terminal.streams import BestEffort
from dflash_tui.core.exit_codes import ExitCode
from support.forked import Piped
from tests.cli.conftest import Program
from tests.cli.programs import program as running
from tests.surroundings import until

SOON = 60.0
"""Seconds: a second, the program's own end, and a machine that does other things."""


def waiting_in(pipe: int) -> int:
    """Bytes that nobody has read."""
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))[0])


def is_full(process: Piped) -> bool:
    assert process.stdout is not None
    before = waiting_in(process.stdout.fileno())
    time.sleep(0.1)
    return before == waiting_in(process.stdout.fileno()) > 30_000


@pytest.mark.parametrize(
    ("numbers", "code"),
    [
        ([signal.SIGTERM], ExitCode.TERMINATED),
        ([signal.SIGINT], ExitCode.INTERRUPTED),
        ([signal.SIGINT, signal.SIGINT], ExitCode.INTERRUPTED),
    ],
)
def test_a_full_pipe_holds_no_signal_up(numbers: list[signal.Signals], code: ExitCode) -> None:
    with running("torrent", "-p", "hi", "--stream-json") as process:
        until(lambda: is_full(process))
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.1)
        assert process.wait(SOON) == code
        assert process.stderr is not None
        assert b"The output was not read to its end.\n  The rest" in process.stderr.read()


def test_a_reader_that_begins_late_misses_nothing() -> None:
    with running("torrent", "-p", "hi") as process:
        until(lambda: is_full(process))
        output, _ = process.communicate(timeout=60)
    assert process.returncode == ExitCode.OK and output == b"many words " * 20_000 + b"\n"


def test_a_named_pipe_without_a_reader_holds_no_time_limit_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with running("plain", "-p", "hi", "-o", str(tmp_path / "pipe"), "--timeout", "0.5") as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == ExitCode.TIMEOUT and b"not read to its end" in said


def test_an_error_pipe_that_nobody_reads_loses_remarks_alone() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writer, b"x" * 512)
    os.set_blocking(writer, True)
    with running("plain", "-p", "hi", stderr=writer) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == ExitCode.OK and output.startswith(b"Hello")
    remarks = BestEffort(writer, "w")
    began = time.monotonic()
    for _ in range(20):
        assert remarks.write(b"a remark\n" * 1000) == 9000
    assert time.monotonic() - began < 15, "it waits once, for a second"
    while waiting_in(reader):
        os.read(reader, 65536)
    remarks.write(b"heard again")
    assert os.read(reader, 100) == b"heard again"
    remarks.close()
    os.close(reader)


def test_a_pipe_that_does_not_wait_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """As programs on Node give them."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with open(writer, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        output = StandardOutput()
        output.write("word " * 40_000)
        read = b""
        while len(read) < 200_000:
            read += os.read(reader, 65536)
        output.close()
        monkeypatch.undo()
    assert read == b"word " * 40_000
    os.close(reader)


@pytest.mark.parametrize(("sent", "words"), [(b"", b"of which nothing has come"), (b"half a", b"the end of stdin")])
def test_an_open_stdin_is_told_and_the_time_limit_counts(sent: bytes, words: bytes) -> None:
    with running("plain", "-p", "hi", "--timeout", "3", stdin=PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(sent)
        process.stdin.flush()
        assert process.stderr.readline().startswith(b"Waiting for " + (b"the end of " if sent else b"") + b"stdin")
        assert process.wait(60) == ExitCode.TIMEOUT
        assert words in process.stderr.read()


LATIN = os.fsdecode(b"caf\xe9")


@pytest.mark.parametrize(
    "words",
    [["-p", LATIN], [f"--prompt={LATIN}"], ["-p", "hi", "--system", LATIN], [LATIN], ["sessions", "list", LATIN]],
)
def test_arguments_that_are_not_utf8_are_told(program: Program, words: list[str]) -> None:
    program.run(*words)
    assert program.code == ExitCode.USAGE and not program.engines
    assert program.err.startswith("dflash-chat: An argument is not UTF-8 text: ") and "iconv" in program.err


def test_files_may_be_called_anything(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(f"{LATIN}.txt").write_text("hello")
    program.run(
        "-p", "hi", "-f", f"{LATIN}.txt", "-o", f"{LATIN}.out", f"--save-dir={LATIN}", "--system", f"@{LATIN}.txt"
    )
    assert program.code == ExitCode.OK, program.err
    assert Path(f"{LATIN}.out").exists() and Path(LATIN, "hello.py").exists()
