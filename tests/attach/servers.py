"""A server on this machine that answers as it was told, byte by byte: recordings with the pattern in which they
arrived, and everything that can go wrong."""

from __future__ import annotations

import json
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, Literal

HERE = Path(__file__).parent
CAPTURES = HERE / "captures"
CERTIFICATE = HERE / "localhost-for-tests.pem"
FASTER = 100.0
"""Recordings are replayed so many times as fast."""

Part = bytes | float | Literal["hang", "die"]
"""Bytes to send at once; seconds to wait; to say nothing until the client goes; to break off."""


@dataclass(frozen=True)
class Reply:
    parts: Sequence[Part] = (b"",)
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


Answer = Reply | list[Reply] | Callable[[Any], Reply]
"""One for every request, one after the other, or whichever fits the question."""


def said(body: Any, status: int = 200, **headers: str) -> Reply:
    """JSON."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply((json.dumps(body).encode(),), status, {"Content-Type": "application/json", **given})


def streamed(*parts: Part) -> Reply:
    """Server-sent events."""
    return Reply(parts, headers={"Content-Type": "text/event-stream"})


def sse(*events: Any) -> bytes:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def content(text: str, **more: Any) -> dict[str, Any]:
    """An event with some text."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}], **more}


def finish(reason: str = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **more}


MODELS = said({"object": "list", "data": [{"id": "some-model", "object": "model", "owned_by": "somebody"}]})


def recorded(capture: Path, faster: float = FASTER) -> Reply:
    """A recorded stream, in pieces as it came."""
    body = capture.read_bytes()
    request = json.loads(capture.with_name(f"{capture.stem}.request.json").read_text())
    parts: list[Part] = []
    now, place = 0.0, 0
    for milliseconds, size, _ in request.get("reads_ms_bytes_events", ()):
        if (wait := (milliseconds - now) / 1000 / faster) > 0.001:
            parts.append(wait)
        parts.append(body[place : place + size])
        now, place = milliseconds, place + size
    cut = request.get("curl_exit") == 18
    return streamed(*parts, body[place:], *(("die",) if cut else ()))


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class FakeServer:
    """Answers requests from ``replies``, by path. What isn't there is 404."""

    def __init__(self, replies: Mapping[str, Answer] | None = None, tls: bool = False) -> None:
        self.replies: dict[str, Answer] = {"/v1/models": MODELS, **(replies or {})}
        self.requests: list[Request] = []
        self.gone = Event()
        """A client went before its answer was whole."""

        class Handler(_Handler):
            server_of_tests = self

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self.url = f"http{'s' * tls}://127.0.0.1:{self.port}"
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def asked(self) -> list[Any]:
        """The questions so far."""
        return [request.body for request in self.requests if request.path.endswith("/chat/completions")]

    @contextmanager
    def closing(self) -> Iterator[FakeServer]:
        try:
            yield self
        finally:
            self.close()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server_of_tests: FakeServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: Any) -> None:
        server = self.server_of_tests
        server.requests.append(Request(self.command, self.path, dict(self.headers), body))
        reply = server.replies.get(self.path, said({"error": {"message": "File Not Found", "code": 404}}, 404))
        if callable(reply):
            reply = reply(body)
        if isinstance(reply, list):
            reply = reply.pop(0) if len(reply) > 1 else reply[0]
        self.send_response(reply.status)
        for name, value in {**reply.headers, "Transfer-Encoding": "chunked", "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        try:
            for part in reply.parts:
                self._send(part)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            server.gone.set()

    def _send(self, part: Part) -> None:
        if isinstance(part, bytes):
            if part:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        elif isinstance(part, float):
            time.sleep(part)
        else:
            if part == "hang":
                select.select([self.connection], [], [], 30)
            self.connection.shutdown(socket.SHUT_RDWR)
            raise OSError("the client went, or is to believe that we did")

    def log_message(self, *_: Any) -> None: ...


def streams() -> Iterator[Path]:
    """Every recorded stream of chats and completions."""
    folders = [CAPTURES, HERE.parents[2] / "shared" / "captures"]
    seen: set[str] = set()
    for folder in folders:
        for path in sorted(folder.glob("*/*.sse")):
            name = f"{path.parent.name}/{path.name}"
            if name not in seen:
                seen.add(name)
                yield path
