"""Requests as anybody may send them, however cut and closed: a whole answer, or an error in words; and whatever came
before, the next question is answered."""

from __future__ import annotations

import json
import socket
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.serve import connection, web
from support.scripted_engine import PAGE
from tests.pace import examples
from tests.serve.conftest import QUESTION, Serve, Served

LINE = "POST /v1/chat/completions HTTP/1.1"
SHORT = {"messages": QUESTION, "temperature": 0}


def request(body: bytes, *fields: str, line: str = LINE, length: int | None = None) -> bytes:
    size = () if length == -1 else (f"Content-Length: {len(body) if length is None else length}",)
    return "\r\n".join([line, "Host: localhost", *size, *fields, "", ""]).encode() + body


def encoded(**body: object) -> bytes:
    return json.dumps({**SHORT, **body}).encode()


def chunked(data: bytes, size: int) -> bytes:
    pieces = [data[place : place + size] for place in range(0, len(data), size)]
    return b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces) + b"0\r\n\r\n"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
FIELDS = (
    "messages", "prompt", "model", "temperature", "top_p", "top_k", "seed", "max_tokens", "max_completion_tokens", "n",
    "stop", "stream", "stream_options", "logprobs", "tools", "response_format", "mirostat", "anything",
)  # fmt: skip
FRONT = "\ufeff".encode()
HEADS = ("Expect: 100-continue", "Connection: Upgrade", "Upgrade: h2c", "Content-Type: text/plain", "Accept: */*")
LINES = (LINE, LINE[:-1] + "0", LINE.replace("/v1", "http://x/v1"), LINE.replace("ons ", "ons/?a=b "))


@st.composite
def whole_requests(draw: st.DrawFn) -> bytes:
    """What must be answered, in one of the ways in which programs send it."""
    body = draw(st.sampled_from([b"", FRONT])) + encoded(stream=draw(st.booleans()))
    fields = draw(st.lists(st.sampled_from(HEADS), unique=True, max_size=2))
    line = draw(st.sampled_from(LINES))
    if draw(st.booleans()) and line != LINES[1]:
        return request(b"", "Transfer-Encoding: chunked", *fields, line=line, length=-1) + chunked(body, draw(sizes))
    return request(body, *fields, line=line)


sizes = st.integers(1, 60)


@st.composite
def other_requests(draw: st.DrawFn) -> bytes:
    """Anything: fields of any kind, bodies that are none, lengths that are wrong, requests that are cut off."""
    body = draw(
        st.binary(max_size=40) | st.dictionaries(st.sampled_from(FIELDS), values).map(lambda each: encoded(**each))
    )
    fields = draw(st.lists(st.sampled_from((*HEADS, "Transfer-Encoding: chunked")), max_size=2))
    length = draw(st.sampled_from([None, None, -1, -5, 0, len(body) + 3]))
    whole = draw(st.sampled_from([request(body, *fields, length=length), b"GET /v1/models HTTP/1.1\r\n\r\n", body]))
    return whole[: draw(st.integers(0, len(whole)))] if draw(st.booleans()) else whole


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


def asked(served: Served, data: bytes, pieces: int, close: bool) -> bytes:
    """What comes of bytes that are sent in so many pieces, by a client that may close its sending side."""
    with connected(served) as client:
        step = max(1, -(-len(data) // pieces))
        with suppress(OSError):  # the server may have answered, and gone
            for place in range(0, len(data), step):
                client.sendall(data[place : place + step])
            if close:
                client.shutdown(socket.SHUT_WR)
        return heard(client)


def test_a_whole_answer_or_words_and_the_next_one_is_answered(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(web, "BODY_SECONDS", 0.5)
    with serve(round_seconds=0.0) as served:

        @settings(max_examples=examples(60))
        @given(whole_requests(), st.integers(1, 30), st.booleans())
        def is_answered(data: bytes, pieces: int, close: bool) -> None:
            assert text_of(asked(served, data, pieces, close)) == PAGE

        @settings(max_examples=examples(60))
        @given(other_requests(), st.integers(1, 3), st.booleans())
        def is_answered_or_told(data: bytes, pieces: int, close: bool) -> None:
            said = asked(served, data, pieces, close)
            head, _, body = said.partition(b"\r\n\r\n")
            if b"200" in head[:13]:
                assert PAGE.startswith(text_of(said))
            elif said:
                assert head[9:10] in b"45" and b"content-type: application/json" in head
                told, _ = json.JSONDecoder().raw_decode(body.decode())  # what is too long is a request of its own
                assert told["error"]["message"].endswith(".")

        is_answered()
        is_answered_or_told()
        assert served.post().json()["choices"][0]["message"]["content"] == PAGE


def connected(served: Served) -> socket.socket:
    host, port = served.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)
