"""Forty shapes of requests and connections that people's programs make, from a generator: a whole answer, or an error
in words; and whatever came before, the next question is answered."""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from dflash_tui.serve import connection, web
from tests.pace import sampled
from tests.scripted_engine import PAGE
from tests.serve.conftest import QUESTION, Serve, Served

Shape = tuple[str, Callable[[socket.socket, random.Random], None], str]
"""A name, what a client does, and what it may get: ``text``, ``error``, ``silence``."""

LINE = "POST /v1/chat/completions HTTP/1.1"
SHORT = {"messages": QUESTION, "temperature": 0}


def request(body: bytes, *fields: str, line: str = LINE, length: int | None = None) -> bytes:
    size = () if length == -1 else (f"Content-Length: {len(body) if length is None else length}",)
    return "\r\n".join([line, "Host: localhost", *size, *fields, "", ""]).encode() + body


def encoded(**body: object) -> bytes:
    return json.dumps({**SHORT, **body}).encode()


def chunked(data: bytes, made: random.Random) -> bytes:
    pieces, place = b"", 0
    while place < len(data):
        size = made.randint(1, 40)
        piece = data[place : place + size]
        pieces += f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
        place += size
    return pieces + b"0\r\n\r\n"


def sends(data: Callable[[random.Random], bytes], close: bool = False, pieces: int = 1) -> Callable[..., None]:
    """A client that sends this, in so many pieces, and may close its sending side."""

    def act(client: socket.socket, made: random.Random) -> None:
        whole = data(made)
        cuts = sorted(made.randrange(len(whole) + 1) for _ in range(pieces - 1))
        for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            client.sendall(whole[begin:end])
            time.sleep(0.001)
        if close:
            client.shutdown(socket.SHUT_WR)

    return act


def part_of(data: bytes) -> Callable[[random.Random], bytes]:
    return lambda made: data[: made.randrange(8, data.index(b"\r\n\r\n"))]


def shapes() -> Iterator[Shape]:
    """The same forty each time; what is random in one is drawn when it is played."""
    for stream in (False, True):
        body, words = encoded(stream=stream), "stream" if stream else "whole"
        whole = request(body)
        yield f"{words}, half closed", sends(lambda _, whole=whole: whole, close=True), "text"
        yield f"{words}, piece by piece", sends(lambda _, whole=whole: whole, pieces=30), "text"
        yield f"{words}, piece by piece, half closed", sends(lambda _, whole=whole: whole, True, 9), "text"
        yield f"{words}, chunked", _chunked(body), "text"
        yield f"{words}, expecting 100", _plain(request(body, "Expect: 100-continue")), "text"
        yield f"{words}, upgrading to h2c", _plain(request(body, "Connection: Upgrade", "Upgrade: h2c")), "text"
        yield f"{words}, HTTP/1.0", _plain(request(body, line=LINE[:-1] + "0")), "text"
        yield f"{words}, HTTP/1.0, half closed", sends(lambda _, b=body: request(b, line=LINE[:-1] + "0"), True), "text"
        yield f"{words}, no content type", _plain(request(body, "Content-Type: text/plain")), "text"
        yield f"{words}, absolute address", _plain(request(body, line=LINE.replace("/v1", "http://x/v1"))), "text"
        yield f"{words}, a slash and a query", _plain(request(body, line=LINE.replace("ons ", "ons/?a=b "))), "text"
        yield f"{words}, cut off", sends(lambda made, w=whole: w[: -made.randrange(1, 30)], close=True), "error"
        yield f"{words}, half a head", sends(part_of(whole)), "error"
        yield f"{words}, half a head, half closed", sends(part_of(whole), close=True), "error"
    for name, value, result in (
        ("seed -1", {"seed": -1, "temperature": 1}, "text"),
        ("content null", {"messages": [{"role": "system", "content": None}, *QUESTION]}, "text"),
        ("numbers in quotes", {"temperature": "0.5", "seed": "3", "stream": "true"}, "text"),
        ("fields of other servers", {"mirostat": 0, "guided_json": None, "top_a": 0.1, "options": {}}, "text"),
        ("a byte-order mark", {"bom": 1}, "text"),
        ("several answers", {"n": 3}, "error"),
    ):
        front = b"\xef\xbb\xbf" if "bom" in value else b""
        yield name, _plain(request(front + encoded(**value))), result
    yield "no JSON", _plain(request(b"hello=world")), "error"
    yield "an empty body", _plain(request(b"")), "error"
    yield "a body without a length", _plain(request(b"", length=-1)), "error"
    yield "a negative length", _plain(request(b"", length=-5)), "error"
    yield "a chunk that is none", _plain(request(b"zz\r\n", "Transfer-Encoding: chunked", length=-1)), "error"
    yield "TLS", sends(lambda made: b"\x16\x03\x01\x02\x00\x01" + made.randbytes(60)), "error"
    yield "noise", sends(lambda made: made.randbytes(40) + b"\r\n\r\n"), "error"
    yield "a long head", _plain(request(b"", f"X: {'x' * 70_000}")), "error"
    yield "no host", _plain(b"GET /v1/models HTTP/1.1\r\n\r\n"), "error"
    yield "silence", lambda client, made: None, "silence"
    yield "silence, half closed", lambda client, made: client.shutdown(socket.SHUT_WR), "silence"


def _plain(data: bytes) -> Callable[..., None]:
    return sends(lambda _: data)


def _chunked(body: bytes) -> Callable[..., None]:
    head = request(b"", "Transfer-Encoding: chunked", length=-1)
    return sends(lambda made: head + chunked(body, made))


SHAPES = list(shapes())


def heard(client: socket.socket, said: bytes = b"") -> bytes:
    """All that comes behind what was ``said`` until an answer is whole, or the connection ends."""
    with suppress(ConnectionError):
        while piece := client.recv(65536):
            said += piece
            head, _, rest = said.replace(connection.CONTINUE, b"").partition(b"\r\n\r\n")
            length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
            if b"data: [DONE]" in rest or (length and len(rest) >= int(length[0].split()[1])):
                break
    return said.replace(connection.CONTINUE, b"")


def text_of(said: bytes) -> str:
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), said[:300]
    if b"text/event-stream" not in head:
        return str(json.loads(body)["choices"][0]["message"]["content"])
    lines = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: {")]
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines]
    return "".join(delta.get("content", "") for delta in deltas)


@pytest.mark.parametrize("seed", sampled(range(3), 3))
def test_a_whole_answer_or_words_and_the_next_one_is_answered(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(web, "BODY_SECONDS", 0.5)
    assert len(SHAPES) >= 40
    made = random.Random(seed)
    with serve(round_seconds=0.0) as served:
        for name, act, wanted in made.sample(SHAPES, len(SHAPES)):
            with connected(served) as client:
                act(client, made)
                said = heard(client)
            if wanted == "text":
                assert text_of(said) == PAGE, name
            elif wanted == "silence":
                assert said == b"", name
            else:
                head, _, body = said.partition(b"\r\n\r\n")
                assert head[9:10] == b"4" and b"content-type: application/json" in head, (name, said)
                assert json.loads(body)["error"]["message"].endswith("."), name
        assert served.post().json()["choices"][0]["message"]["content"] == PAGE


def connected(served: Served) -> socket.socket:
    host, port = served.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)
