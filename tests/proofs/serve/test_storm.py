"""Clients by the hundred, of which a third vanish, leave the server as it was: descriptors, threads, memory."""

from __future__ import annotations

import gc
import os
import random
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

from dflash_tui.serve.dialects import Dialect
from dflash_tui.serve.scheduler import Ticket
from dflash_tui.serve.server import ServeOptions
from tests.serve.conftest import Serve, Served

from .test_queue import busy
from .test_shapes import connected, encoded, heard, request

AT_ONCE, ROUNDS = 8, 20
WAYS = {
    "/v1/chat/completions": encoded(),
    "/v1/messages": encoded(max_tokens=99),
    "/v1/responses": b'{"input": "Hi"}',
    "/api/chat": encoded(),
}


def one(served: Served, seed: int) -> str:
    """A client's visit; a third goes while it waits or in the middle."""
    made = random.Random(seed)
    path = made.choice(list(WAYS))
    body = WAYS[path][:-1] + (b', "stream": true}' if made.random() < 0.5 else b', "stream": false}')
    with connected(served) as client:
        client.sendall(request(body, "Connection: close", line=f"POST {path} HTTP/1.1"))
        if seed % 3:
            return "answered" if b" 200 " in heard(client).partition(b"\r\n")[0] else "refused"
        if made.random() < 0.5 and client.recv(1):  # a reset, of a request that surely has arrived
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        return "vanished"


def left(served: Served) -> tuple[int, int, int]:
    """Descriptors, threads, and requests or answers that something still holds."""
    gc.collect()
    held = sum(isinstance(each, Ticket | Dialect) for each in gc.get_objects())
    return len(os.listdir("/proc/self/fd")), threading.active_count(), held


def test_a_storm_leaves_nothing_behind(serve: Serve) -> None:
    with serve(ServeOptions(port=0, most_waiting=5), answer="One two three four. " * 20) as served:
        told: list[str] = []
        one(served, 1)
        served.until(lambda: left(served)[2] == 0)
        before = left(served)
        for number in range(ROUNDS):
            with ThreadPoolExecutor(AT_ONCE) as pool:
                told += pool.map(lambda seed: one(served, seed), range(number * AT_ONCE, (number + 1) * AT_ONCE))
        served.until(lambda: not busy(served) and not served.serving.scheduler.waiting)
        served.events.clear()
        served.until(lambda: left(served) == before)
        assert told.count("vanished") == AT_ONCE * ROUNDS // 3 + 1
