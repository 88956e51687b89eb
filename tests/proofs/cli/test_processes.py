"""The program as another process sees it: signals, broken pipes, terminals."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager

import pytest

from dflash_tui.core.exit_codes import ExitCode
from support.forked import Piped
from tests.cli.programs import program


def started(script: str, *flags: str, **streams: int) -> AbstractContextManager[Piped]:
    return program(script, "-p", "hi", *flags, **streams)


def read_some(process: Piped) -> bytes:
    assert process.stdout is not None
    return os.read(process.stdout.fileno(), 65536)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)]
)
def test_a_signal_stops_the_turn_and_keeps_what_was_written(number: int, code: ExitCode) -> None:
    with started("endless") as process:
        first = read_some(process)
        process.send_signal(number)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert (first + rest).replace(b"word ", b"") == b"\n"
    assert errors.decode().rstrip().endswith("stopped")


def test_the_timeout_stops_the_turn_and_keeps_what_was_written() -> None:
    with started("endless", "--timeout", "0.5") as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == ExitCode.TIMEOUT
    assert output.startswith(b"word word ")
    assert b"dflash-chat: The time that --timeout allows is up.\n  Allow more time" in errors


def test_the_timeout_counts_from_the_start_of_loading() -> None:
    with started("loading", "--timeout", "0.2") as process:
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (ExitCode.TIMEOUT, b"")
    assert errors.startswith(b"dflash-chat: The time")


@pytest.mark.parametrize("script", ["loading", "stuck"])
def test_ctrl_c_ends_the_program_when_the_engine_does_not_listen(script: str) -> None:
    with started(script, "--stream-json") as process:
        read_some(process)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED


def test_a_reader_that_goes_away_ends_the_program_quietly() -> None:
    with started("endless") as process:
        read_some(process)
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(60)
    assert (process.returncode, errors) == (ExitCode.BROKEN_PIPE, b"")


def test_output_is_flushed_at_every_step() -> None:
    with started("stuck", "--stream-json") as process:
        lines = b""
        while b"PrefillDone" not in lines:
            lines += read_some(process)
        assert process.poll() is None


def test_a_full_disk_behind_stdout_is_explained() -> None:
    with open("/dev/full", "wb") as full, started("plain", stdout=full.fileno()) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == ExitCode.GENERATION
    assert b"could not be written: No space left" in errors


@pytest.mark.parametrize("stream", ["<&-", "2>/dev/full"])
def test_a_stream_that_is_not_needed_is_no_reason_to_fail(stream: str) -> None:
    result = in_a_shell(f"plain -p hi {stream}")
    assert result.returncode == ExitCode.OK
    assert result.stdout.startswith(b"Hello")
    assert (b"12 tokens" in result.stderr) == (stream == "<&-")


@pytest.mark.parametrize("command", ["plain -p hi", "plain help chats"])
def test_what_a_closed_stdout_would_lose_is_told(command: str) -> None:
    result = in_a_shell(f"{command} >&-")
    assert result.returncode == ExitCode.USAGE
    assert result.stderr.startswith(b"dflash-chat: stdout is closed: what belongs there would be lost.")


def test_what_is_printed_at_the_very_end_counts() -> None:
    result = in_a_shell("plain help chats >/dev/full")
    assert (result.returncode, b"No space left" in result.stderr) == (ExitCode.GENERATION, True)


def in_a_shell(words: str) -> subprocess.CompletedProcess[bytes]:
    """The program with redirections behind its flags."""
    command = f'"{sys.executable}" -m support.scripted {words}'
    return subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


def read_terminal(descriptor: int) -> bytes:
    output = b""
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # Linux reports the end of a terminal's other side as an error
            return output
        if not chunk:
            return output
        output += chunk


def test_a_terminal_sees_progress_but_no_control_characters_of_the_model() -> None:
    here, there = pty.openpty()
    with started("escapes", stdout=there, stderr=there) as process:
        os.close(there)
        output = read_terminal(here).decode()
        process.wait(60)
    os.close(here)
    assert "reading weights: 3 of 15 MB" in output
    assert "tiny + tiny-DFlash on cpu, float32\r\nI know little.\r\n" in output
    assert "␛[31mred␇\ttab\r\n12 tokens" in output


def test_a_dumb_terminal_gets_a_chat_in_lines() -> None:
    here, there = pty.openpty()
    with program("plain", stdin=there, stdout=there, stderr=there, environment={"TERM": "dumb"}) as process:
        os.close(there)
        os.write(here, b"hi\n/retry\n/quit\n")
        output = read_terminal(here).decode()
        process.wait(60)
    os.close(here)
    assert process.returncode == ExitCode.OK
    assert "one in lines, as with --plain" in output and "version 2 of 2 of the answer" in output
    assert "\x1b" not in output
