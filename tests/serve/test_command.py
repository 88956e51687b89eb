"""``dflash-chat serve`` as a process: what it says, how it ends, what it refuses."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.serve.server import Serving, listen
from engine.events import EngineError
from support.scripted import Script
from tests.cli.conftest import Program
from tests.cli.conftest import program as program
from tests.cli.programs import program as program_on
from tests.pace import sampled

PIPE = subprocess.PIPE
KEY = "a-key-of-some-length"


@contextmanager
def started(script: str, *flags: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and all that it said on stdout until it was ready."""
    command = [sys.executable, "-m", "support.scripted", script, "serve", "--port", "0", *flags]
    process = subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True, env={**os.environ, **environment})
    assert process.stdout is not None
    try:
        yield process, "".join(process.stdout.readline() for _ in range(5))
    finally:
        process.kill()
        process.wait()


def url_in(said: str) -> str:
    found = re.search(r"http://[^/\s]+", said)
    assert found is not None
    return found[0]


def curl(*arguments: str) -> str:
    return subprocess.run(["curl", "-sN", *arguments], capture_output=True, text=True, timeout=60).stdout


def test_the_line_to_copy_works_and_a_signal_ends_it_all() -> None:
    with started("plain", DFLASH_CHAT_SERVE_KEY=KEY) as (process, said):
        line = re.search(r"(curl .*?\}')", said.replace("\\\n", ""), re.DOTALL)
        assert line is not None and KEY not in said and "with its API key" in said
        answer = subprocess.run(
            ["sh", "-c", line[1]], capture_output=True, text=True, env={**os.environ, "DFLASH_CHAT_SERVE_KEY": KEY}
        )
        assert '"content":"Hello, wörld' in answer.stdout
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED and re.search(r"\d\d:\d\d:\d\d 7 \+ 12 tokens", errors)


def test_a_signal_ends_a_stream_in_an_orderly_way_and_a_second_one_does_not_wait() -> None:
    with started("endless") as (process, said), started("stuck") as (stuck, also_said):
        url, other = (re.search(r"http://\S+", text)[0] for text in (said, also_said))  # type: ignore[index]
        body = ["-d", '{"messages": [{"role": "user", "content": "hi"}], "stream": true}']
        streams = [
            subprocess.Popen(["curl", "-sN", f"{each}/chat/completions", *body], stdout=PIPE, text=True)
            for each in (url, other)
        ]
        for stream in streams:
            assert stream.stdout is not None and stream.stdout.readline()
        process.send_signal(signal.SIGTERM)
        rest, _ = streams[0].communicate(timeout=60)
        assert rest.endswith("data: [DONE]\n\n") and "The server is ending." in rest
        assert process.wait(60) == ExitCode.TERMINATED
        stuck.send_signal(signal.SIGINT)
        time.sleep(0.2)
        stuck.send_signal(signal.SIGINT)
        _, errors = stuck.communicate(timeout=60)
        # Who waits to the end knows how many had no whole answer.
        assert stuck.returncode == ExitCode.INTERRUPTED and "ended by" in errors and "whole answer" not in errors
        streams[1].kill()


@pytest.mark.parametrize(
    ("number", "told"),
    sampled([(signal.SIGINT, "is ending"), (signal.SIGTERM, "is ending"), (signal.SIGKILL, "broke")], 2),
)
def test_a_server_that_ends_in_mid_answer_is_an_error_at_its_client(number: signal.Signals, told: str) -> None:
    with started("endless") as (process, said), program_on("plain", url_in(said), "-p", "hi") as client:
        assert client.stdout is not None and process.stderr is not None
        begun = os.read(client.stdout.fileno(), 1 << 16)
        process.send_signal(number)
        rest, errors = client.communicate(timeout=60)
        logged = process.stderr.read()
    assert client.returncode == ExitCode.REMOTE and told in errors.decode()
    assert begun and (begun + rest).replace(b"word ", b"") == b"\n"
    expected = f"ended by {number.name} · 1 request without a whole answer"
    assert number is signal.SIGKILL or expected in logged


def test_what_is_refused_before_anything_is_loaded(program: Program) -> None:
    taken = listen("127.0.0.1", 0)
    port = str(taken.getsockname()[1])
    for flags, message, hint in (
        (["--port", port], f"Port {port} of 127.0.0.1 is in use", "--port"),
        (["--host", "0.0.0.0"], "Other machines reach 0.0.0.0", "--no-api-key"),
        (["--host", "no.such.host.invalid"], "no address", "--host"),
        (["--host", "203.0.113.1", "--no-api-key"], "Nobody can listen", "--host"),
        (["--api-key", "short"], "at least 8", "secrets"),
        (["--api-key", KEY, "--no-api-key"], "exclude each other", "DFLASH_CHAT_SERVE_KEY"),
        (["--temperature", "3"], "Temperature must be between", "dflash-chat serve --help"),
        (["--port", "99999"], "99999", "dflash-chat serve --help"),
        (["--watch"], "--watch needs a terminal", "Leave --watch out"),
    ):
        program.run("serve", *flags)
        assert program.code == ExitCode.USAGE and program.out == b"", flags
        first, second = program.err.rstrip("\n").split("\n")
        assert message in first and hint in second
    taken.close()


def test_a_pair_that_can_t_be_loaded_ends_the_server(program: Program) -> None:
    program.script = Script(load_error=EngineError("weights", "The checkpoint is damaged.", "Fetch it.", fatal=True))
    program.run("serve", "--port", "0", "--no-speculation", "some/model")
    assert program.code == ExitCode.WEIGHTS and "The checkpoint is damaged." in program.err
    assert (program.engine.options.target, program.engine.options.drafter) == ("some/model", "none")


def test_a_server_whose_thread_dies_ends_in_words(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    start = Serving.start

    def start_and_die(serving: Serving) -> None:
        start(serving)
        serving.loop.call_soon_threadsafe(sys.exit, 7)

    monkeypatch.setattr(Serving, "start", start_and_die)
    program.script = Script(loading=0.2)
    program.run("serve", "--port", "0")
    assert program.code == ExitCode.REMOTE and "nobody is answered any more" in program.err
