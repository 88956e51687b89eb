"""One answer at a time: who waits, who is next, who went; and how a server ends."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from dflash_tui.serve import connection
from dflash_tui.serve.server import ServeOptions
from engine.commands import Stop
from engine.events import Step
from tests.serve.conftest import QUESTION, Json, Serve, Served

SHORT = "One two three."


def ask(served: Served, text: str = "hello", user: str = "", stream: bool = False) -> httpx2.Response:
    body: Json = {"messages": [{"role": "user", "content": text}], "user": user, "stream": stream}
    with served.http() as http:
        return http.post("/v1/chat/completions", json=body)


def waiting(served: Served, count: int) -> bool:
    return served.serving.scheduler.waiting == count


def busy(served: Served) -> bool:
    """An answer has begun and not ended."""
    return any(isinstance(event, Step) for event in served.events) and len(served.finished()) < len(served.engine.asked)


def test_clients_take_turns(serve: Serve) -> None:
    gate = threading.Event()
    with serve(answer=SHORT, work=gate.wait) as served, ThreadPoolExecutor(8) as pool:
        answers = []
        for place, text in enumerate(("a1", "a2", "a3", "a4", "b1", "c1")):
            answers.append(pool.submit(ask, served, text, user=text[0]))
            served.until(lambda place=place: waiting(served, place) and served.engine.asked)
        gate.set()
        for answer in answers:
            assert answer.result().status_code == 200
        assert [each.messages[-1].content for each in served.engine.asked] == ["a1", "a2", "b1", "c1", "a3", "a4"]


def test_a_full_queue_says_when_to_come_back_and_the_greedy_give_way(serve: Serve) -> None:
    gate, options = threading.Event(), ServeOptions(port=0, most_waiting=2)
    with serve(options, answer=SHORT, work=gate.wait) as served, ThreadPoolExecutor(8) as pool:
        line = []
        for place, text in enumerate(("a0", "a1", "a2")):
            line.append(pool.submit(ask, served, text, "a"))
            served.until(lambda place=place: waiting(served, place) and served.engine.asked)
        refused = ask(served, "a3", "a")
        assert refused.status_code == 503 and refused.json()["error"]["code"] == "queue_full"
        assert 1 <= int(refused.headers["retry-after"]) <= 120
        other = pool.submit(ask, served, "b1", "b")
        assert line[2].result().status_code == 503, "the newest of who has most"
        gate.set()
        assert [each.result().status_code for each in (line[0], line[1], other)] == [200] * 3


def test_who_goes_while_waiting_or_before_a_whole_answer_is_not_answered(serve: Serve) -> None:
    from openai import APITimeoutError

    gate = threading.Event()
    with serve(work=gate.wait) as served:
        impatient = served.client(timeout=0.3)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(ask, served, "whole", "a")
            served.until(lambda: busy(served))
            with pytest.raises(APITimeoutError):
                impatient.chat.completions.create(model="default", messages=QUESTION)  # type: ignore[arg-type]
            served.until(lambda: waiting(served, 0))
            gate.set()
            assert first.result().status_code == 200
        gate.clear()
        with pytest.raises(APITimeoutError):
            impatient.chat.completions.create(model="default", messages=QUESTION)  # type: ignore[arg-type]
        served.until(lambda: any(isinstance(command, Stop) for command in served.engine.commands))
        gate.set()
        served.until(lambda: len(served.finished()) == 2)
        assert [each.messages[-1].content for each in served.engine.asked] == ["whole", "Write a page"]
        assert served.finished()[1].reason == "stopped"


def test_who_stops_reading_is_let_go(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is longer than what the system buffers for it."""
    monkeypatch.setattr(connection, "STALLED_SECONDS", 0.3)
    with serve(answer="word " * 60_000, round_seconds=0.0) as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # before the system has room for megabytes
            deaf.connect((host, int(port)))
            body = b'{"messages": [{"role": "user", "content": "hi"}], "stream": true, "return_dflash_events": true}'
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
            deaf.sendall(head.encode() + body)
            served.until(lambda: any(isinstance(command, Stop) for command in served.engine.commands))
            served.until(lambda: served.finished())
        assert served.finished()[0].reason == "stopped"


def test_loading_is_told_and_asked_to_wait_for(serve: Serve) -> None:
    with serve(ready=False, load_seconds=3600) as served, served.http() as http:
        for path in ("/health", "/v1/models", "/dflash"):
            answer = http.get(path)
            assert answer.status_code == 503 and "being loaded" in answer.text and answer.headers["retry-after"]
        assert ask(served).status_code == 503


def test_the_end_is_told_to_everybody(serve: Serve) -> None:
    with serve(round_seconds=0.02) as served, ThreadPoolExecutor(4) as pool:
        running = pool.submit(ask, served, "a", "a", stream=True)
        served.until(lambda: busy(served))
        queued = pool.submit(ask, served, "b", "b")
        served.until(lambda: waiting(served, 1))
        ending = threading.Thread(target=served.serving.end)
        ending.start()
        assert queued.result().status_code == 503
        *_, error, done, _ = running.result().text.split("\n\n")
        assert '"message":"The server is ending."' in error and done == "data: [DONE]"
        ending.join()
        assert served.finished()[-1].reason == "stopped"
        with pytest.raises(httpx2.ConnectError):
            ask(served)
