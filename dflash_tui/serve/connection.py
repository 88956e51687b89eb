"""A connection to a client, which may be odd: it sends half a request, closes one side, or speaks no HTTP at all."""

from __future__ import annotations

import socket
from asyncio import TimerHandle, Transport
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .dialects import encoded
from .failures import ApiFailure

HEAD_SECONDS = 15.0
"""Seconds that a client may take to send a request's head; a new connection may be silent as long."""
STALLED_SECONDS = 60.0
"""Seconds that a client may leave unread what was sent to it."""
LOOK_SECONDS, PROBE_SECONDS = 0.1, 10.0
"""Seconds between two looks at whether a client that sends no more is still there; between two probes that tell."""
MAX_HEAD_BYTES = 16 * 1024
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""Sent as the probe: every client skips it, and the operating system of a client that has gone answers that it has."""

TOO_SLOW = ApiFailure(408, f"The request's head did not arrive within {HEAD_SECONDS:.0f} s.")
TOO_LONG = ApiFailure(431, f"The request's head is longer than {MAX_HEAD_BYTES // 1024} KiB.")
NO_REQUEST = ApiFailure(400, "This is no request of HTTP/1.1. The server speaks it plainly, without TLS.")
CUT_OFF = ApiFailure(400, "The request ended before it was whole.")


class ClientConnection(H11Protocol):
    """HTTP/1.1 as uvicorn has it, with three additions: a head has a time limit; a client that has closed only its
    sending side is answered; and what is refused before there is a request gets an error object, as everything else
    does."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limit: TimerHandle | None = None
        """Closes a connection whose head is overdue."""
        self._stall: TimerHandle | None = None
        """Closes a connection of which nothing is read any more."""
        self._half_closed = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as in what it overrides
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._limit is None and self._owes_head:
            self._expect_head()
        super().data_received(data)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._stop_clock()

    def on_response_complete(self) -> None:
        super().on_response_complete()  # which may begin with a request that came behind this one
        if not self._owes_head or self.transport.is_closing():
            return
        if self._half_closed:
            self.transport.close()
        elif self._unread:
            self._expect_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()

    def eof_received(self) -> bool | None:  # type: ignore[override]  # uvicorn's never keeps the connection
        """A client that has sent its whole request may have closed this side alone: it is answered all the same."""
        self._half_closed = True
        if not self._owes_head and not self.cycle.more_body:
            self.cycle.message_event.set()  # whoever waits for news of the client looks whether it is there
            self._ask_whether_there()
            self._look()
            return True
        if self._unread if self._owes_head else not self.cycle.response_started:
            self._refuse(CUT_OFF)
        return None

    def send_400_response(self, msg: str) -> None:
        self._refuse(TOO_LONG if len(self._unread) > MAX_HEAD_BYTES else NO_REQUEST)

    @property
    def _owes_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def _unread(self) -> bytes:
        """The bytes received so far of a request's head, which isn't complete."""
        return self.conn.trailing_data[0]

    def _expect_head(self) -> None:
        self._stop_clock()
        self._limit = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _expect_reading(self, waiting: int) -> None:
        """Closes the connection if ``waiting`` bytes are still unsent after ``STALLED_SECONDS``."""

        def look() -> None:
            left = self.transport.get_write_buffer_size()
            if left < waiting:
                self._expect_reading(left)
            else:
                self.transport.abort()

        self._stall = self.loop.call_later(STALLED_SECONDS, look)

    def _stop_clock(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._limit = None

    def _give_up(self) -> None:
        """Closes a connection whose head is overdue; one that was opened in advance and sent nothing is closed without
        a word."""
        self._limit = None
        if self._unread:
            self._refuse(TOO_SLOW)
        else:
            self.transport.close()

    def _refuse(self, failure: ApiFailure) -> None:
        """Answers in the place of a request that is none, and ends the connection."""
        if self.transport.is_closing():
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = encoded(failure.body())
            headers = [
                ("content-type", "application/json"),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            reason = HTTPStatus(failure.status).phrase
            response = h11.Response(status_code=failure.status, headers=headers, reason=reason)
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _ask_whether_there(self) -> None:
        """Probes whether the client is there, before the answer begins; later the answer's own bytes tell."""
        if self.transport.is_closing() or self.cycle.response_started:
            return
        if self.cycle.scope["http_version"] == "1.1":  # older clients would take it for the answer
            self.transport.write(CONTINUE)
        self.loop.call_later(PROBE_SECONDS, self._ask_whether_there)

    def _look(self) -> None:
        """Closes a connection whose other side is gone, which a server doesn't hear while it reads nothing."""
        if self.transport.is_closing():
            return
        connected: socket.socket = self.transport.get_extra_info("socket")
        if connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
        elif not self._owes_head:
            self.loop.call_later(LOOK_SECONDS, self._look)
