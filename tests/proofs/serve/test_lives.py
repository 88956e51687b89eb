"""A server says that it lives while somebody waits, and lives on, or ends in words: never a process that is deaf."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dflash_tui.serve import web
from engine.commands import Stop
from tests.serve.conftest import Serve, Served

from .test_queue import ask, busy
from .test_shapes import connected, encoded, heard, request, text_of


def stopped(served: Served) -> bool:
    return any(isinstance(command, Stop) for command in served.engine.commands)


def test_a_stream_that_waits_begins_at_once_and_says_that_it_lives(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "SIGN_SECONDS", 0.05)
    gate = threading.Event()
    with serve(answer="One two.", work=gate.wait) as served, ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, served, "first", "a")
        served.until(lambda: busy(served))
        with connected(served) as client:
            client.sendall(request(encoded(stream=True)))
            said = b""
            while said.count(b": wait\n\n") < 2:
                said += client.recv(65536)
            assert b"text/event-stream" in said and b"data:" not in said
            gate.set()
            assert text_of(heard(client, said)) == "One two."
        assert first.result().status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_closed_one_side_is_answered_and_one_that_went_is_not(serve: Serve, stream: bool) -> None:
    """Both look the same until something is sent to them."""
    gate = threading.Event()
    with serve(answer="One two three four five six seven eight nine ten.", work=gate.wait) as served:
        with connected(served) as half:
            half.sendall(request(encoded(stream=stream)))
            half.shutdown(socket.SHUT_WR)
            served.until(lambda: busy(served))
            gate.set()
            assert text_of(heard(half)).startswith("One two")
        gate.clear()
        with connected(served) as gone:
            gone.sendall(request(encoded(stream=stream)))
            served.until(lambda: busy(served))
        served.until(lambda: stopped(served))
        gate.set()
        served.until(lambda: len(served.finished()) == 2)
        assert [each.reason for each in served.finished()] == ["stop", "stopped"]
