"""Everything that can go wrong with a server has its own sentence, leaves what came, and never a traceback."""

from __future__ import annotations

import logging
import socket
from typing import Any

import httpx2
import pytest

from dflash_tui.attach.transport.connection import Patience
from dflash_tui.attach.transport.urls import proxy_for
from engine.commands import Stop
from engine.events import EngineReady, Notice, Step, TurnFinished
from tests.attach.conftest import CHAT, Attach, Serve, only_error
from tests.attach.servers import (
    CAPTURES,
    CERTIFICATE,
    FakeServer,
    Reply,
    content,
    finish,
    said,
    sse,
    streamed,
)
from tests.surroundings import until

KEY = "sk-very-secret-0123456789"
HELLO = streamed(sse(content("Hello"), content(" there"), finish(), "[DONE]"))
ERRORS = CAPTURES / "llamacpp"


REFUSALS = {
    "401": (said({"error": {"message": "Invalid API Key", "code": 401}}, 401), "wants another key"),
    "404 model": (said({"error": {"message": "The model `x` does not exist."}}, 404), "does not have this model"),
    "404": (said({"detail": "Not Found"}, 404), "has nothing at this place"),
    "429": (said({"error": {"message": "Slow down"}}, 429, Retry_After="17"), "takes no more questions"),
    "500": (said({"error": {"message": "boom"}}, 500), "failed (status 500): boom."),
    "503": (said({}, 503, Retry_After="3"), "is not available"),
    "400": (said({"error": {"message": "Field 'temperature' must be number"}}, 400), "Field 'temperature'"),
    "too long": (
        Reply(((ERRORS / "ngram_error_too_long.json").read_bytes(),), 400), "The conversation is too long",
    ),
    "html": (Reply((b"<!doctype html><p>Please log in",), headers={"Content-Type": "text/html"}), "a web page"),
    "no json": (Reply((b"It works!",), headers={"Content-Type": "text/plain"}), "no JSON"),
    "half of it": (Reply((b'{"error": ',), 502), "is not available"),
    "error event": (streamed(sse(content("Hel"), {"error": {"message": "EngineCore died"}})), "EngineCore died."),
    "broken event": (streamed(sse(content("Hel")), b"data: {nonsense\n\n"), "in the middle: {nonsense"),
    "no end": (streamed(sse(content("Hel"))), "ended the answer in the middle"),
    "it dies": (streamed(sse(content("Hel")), "die"), "The connection to"),
    "loading": (said({"error": {"message": "Loading model", "code": 503}}, 503), "is still loading its model"),
    "overloaded": (said({"error": {"message": "Overloaded: 9 requests wait"}}, 503), "is not available"),
    "a loop": (Reply(status=307, headers={"Location": CHAT}), "round in circles"),
    "lost on the way": (Reply(status=302, headers={"Location": "/elsewhere"}), "loses the question"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_every_refusal_is_a_sentence_and_the_next_question_is_answered(name: str, serve: Serve, attach: Attach) -> None:
    reply, words = REFUSALS[name]
    server = serve(reply)
    attached = attach(server.url)
    attached.ready()
    events = attached.ask()
    server.replies[CHAT] = HELLO
    error, finished = only_error(events), events[-1]
    assert words in error.message and error.turn == 1 and not error.fatal
    assert finished.reason == "error" and "Hel".startswith(finished.text)
    assert finished.text == "".join(t.text for step in events if isinstance(step, Step) for t in step.emitted)
    again = attached.ask()
    assert again[-1].text == "Hello there" and again[-1].reason == "stop"
    hints = {"429": "17 seconds", "404 model": "some-model", "401": "DFLASH_CHAT_KEY"}
    assert hints.get(name, "") in error.hint


def test_nothing_listens(attach: Attach) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (error,) = attach(f"http://127.0.0.1:{port}").until(EngineReady)
    assert error.fatal and "Nothing listens" in error.message


def test_it_takes_the_connection_and_says_nothing(attach: Attach) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        patience = Patience(connect=0.3, answer=0.3)
        (error,) = attach(f"http://127.0.0.1:{mute.getsockname()[1]}", patience=patience).until(EngineReady)
    assert error.fatal and "fallen silent" in error.message


def test_it_does_not_speak_http(attach: Attach) -> None:
    with FakeServer(tls=True).closing() as server:
        plain = server.url.replace("https", "http")
        (error,) = attach(plain).until(EngineReady)
        assert error.fatal and only_error([error])


@pytest.mark.parametrize("first, silence, words", [(0.2, 5.0, ""), (5.0, 0.2, "Hel")])
def test_silence_ends_an_answer(first: float, silence: float, words: str, serve: Serve, attach: Attach) -> None:
    reply = streamed(*([sse(content(words))] if words else []), b": still here\n\n", "hang")
    patience = Patience(first_token=first, silence=silence)
    server = serve([reply, HELLO])
    attached = attach(server.url, patience=patience)
    attached.ready()
    events = attached.ask()
    assert "fallen silent" in only_error(events).message and events[-1].text == words
    assert server.gone.wait(60)
    assert attached.ask()[-1].text == "Hello there"


def test_a_server_that_reads_a_long_question_is_waited_for(serve: Serve, attach: Attach) -> None:
    progress = {"choices": [], "prompt_progress": {"total": 9000, "cache": 0, "processed": 2048}}
    reply = streamed(sse(progress), 0.4, sse(progress), 0.4, sse(content("Hello"), finish(), "[DONE]"))
    attached = attach(serve(reply).url, patience=Patience(silence=0.2))
    attached.ready()
    assert attached.ask()[-1].text == "Hello"


GARBAGE = {
    "a line without an end": [b"data: " + b"x" * (1 << 20)] * 100,
    "comments without an end": [b": " + b"x" * 65530 + b"\n"] * 1600,
    "no stream": [b"x" * (1 << 20)] * 100,
}


@pytest.mark.parametrize("what", GARBAGE)
def test_a_hundred_megabytes_of_garbage_are_not_read(what: str, serve: Serve, attach: Attach) -> None:
    kind = "text/plain" if what == "no stream" else "text/event-stream"
    server = serve(Reply(GARBAGE[what], headers={"Content-Type": kind}))
    attached = attach(server.url)
    attached.ready()
    assert "endless" in only_error(attached.ask()).message
    assert server.gone.wait(60), "the connection is closed long before its end"


def test_stop_cancels_the_request(serve: Serve, attach: Attach) -> None:
    server = serve([streamed(sse(content("Hello")), "hang"), streamed("hang"), HELLO])
    attached = attach(server.url)
    attached.ready()
    for words in ("Hello", ""):
        server.gone.clear()
        attached.send_question()
        if words:
            attached.until(Step)
        else:
            until(lambda: len(server.asked()) == 2)
        attached.source.send(Stop())
        finished = attached.until(TurnFinished)[-1]
        assert finished.reason == "stopped" and finished.text == words
        assert server.gone.wait(60), "the server hears of it"
    assert attached.ask()[-1].reason == "stop"


def test_it_waits_for_a_server_that_loads(serve: Serve, attach: Attach) -> None:
    loading = Reply(((ERRORS / "b11434-life_health_while_loading.json").read_bytes(),), 503)
    server = serve(HELLO)
    server.replies["/v1/models"] = [loading, loading, server.replies["/v1/models"]]  # type: ignore[list-item]
    attached = attach(server.url)
    progress, ready = attached.until(EngineReady)[0], attached.source
    assert "loading its model" in progress.phase and ready.capabilities.can("ask")
    assert attached.ask()[-1].text == "Hello there"


def test_a_stop_while_it_loads_withdraws_the_question(serve: Serve, attach: Attach) -> None:
    server = serve(HELLO)
    server.replies["/v1/models"] = said({"error": {"message": "The models are still being loaded."}}, 503)
    attached = attach(server.url)
    attached.until(type(attached.until(object)[0]))
    attached.send_question()
    attached.source.send(Stop())
    assert attached.until(TurnFinished)[-1].reason == "stopped" and server.asked() == []


def test_a_key_goes_to_its_server_and_nowhere_else(
    serve: Serve, attach: Attach, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    other, server = serve(HELLO), serve()
    headers = {"X-Team": KEY}
    there = other.url.replace("127.0.0.1", "localhost")
    for code, place in ((307, there + CHAT), (302, there + CHAT), (308, other.url + CHAT)):
        server.replies[CHAT] = Reply(status=code, headers={"Location": place})
        attached = attach(server.url, key=KEY, headers=headers)
        told: list[Any] = [attached.ready()]
        told += attached.ask()
        assert "to another server" in only_error(told).message
        assert KEY not in repr(told) + repr(attached.source.__dict__)
    server.replies["/v1/models"] = Reply(status=301, headers={"Location": there + "/v1/models"})
    (error,) = attach(server.url, key=KEY, headers=headers).until(EngineReady)
    assert "to another server" in error.message and error.fatal
    assert other.requests == [], "nothing goes there at all"
    assert all(request.headers["Authorization"] == f"Bearer {KEY}" for request in server.requests)
    assert all(request.headers["X-Team"] == KEY for request in server.requests)
    output = capfd.readouterr()
    assert KEY not in caplog.text + output.out + output.err


def test_tls_is_verified(serve: Serve, attach: Attach, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(HELLO, tls=True)
    (error,) = attach(server.url).until(EngineReady)
    assert error.fatal and "certificate" in error.message and "SSL_CERT_FILE" in error.hint
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    attached = attach(server.url)
    assert attached.ready().server == server.url
    assert attached.ask()[-1].text == "Hello there"
    (error,) = attach(serve().url.replace("http", "https")).until(EngineReady)
    assert error.fatal and "TLS" in error.message


def test_this_machine_is_not_asked_through_a_proxy(
    serve: Serve, attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    port = serve(HELLO).port
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "127.1.2.3", "0.0.0.0", "[::ffff:127.0.0.1]"):
        (ready, *_) = attach(f"http://{host}:{port}").until(EngineReady, Notice)
        assert isinstance(ready, EngineReady) or "Nothing listens" in ready.message, "no proxy has a part in it"


@pytest.mark.parametrize("spared", ["", "10.0.0.0/8", "example.invalid,.internal"])
def test_a_proxy_that_fails_is_named(
    spared: str, serve: Serve, attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://me:{KEY}@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", spared)
    (error,) = attach("http://far-away.invalid:8000").until(EngineReady)
    assert error.fatal and "The proxy http://127.0.0.1:9" in error.message and "NO_PROXY" in error.hint
    assert KEY not in repr(error)
    for host, where in (("x.internal", ".internal"), ("10.1.2.3", "10.0.0.0/8")):
        assert (proxy_for(httpx2.URL(f"http://{host}:8000")) is None) == (where in spared)
    gate = serve()
    gate.replies["http://far-away.invalid:8000/v1/models"] = said({"error": "log in"}, 407)
    monkeypatch.setenv("HTTP_PROXY", gate.url)
    (error,) = attach("http://far-away.invalid:8000").until(EngineReady)
    assert f"The proxy {gate.url} wants a user and a password: log in." in error.message


FORMS = ("/", "/v1", "/v1/", "//v1//", "/v1/chat/completions", "/v1/chat/completions/", "/v1/models", "/v1/completions")


@pytest.mark.parametrize("form", FORMS)
def test_an_address_in_any_form_is_the_same_server(form: str, serve: Serve, attach: Attach) -> None:
    server = serve(HELLO)
    attached = attach(server.url.replace("http", "HTTP") + form)
    assert attached.ready().server == server.url
    assert attached.ask()[-1].text == "Hello there"


@pytest.mark.parametrize("split", [1, 5, 100])
def test_a_key_that_a_server_echoes_is_redacted(split: int, serve: Serve, attach: Attach) -> None:
    text = f"Your key is {KEY}, or sk-verily, or {KEY}."
    pieces = [text[at : at + split] for at in range(0, len(text), split)]
    echo = streamed(sse(*map(content, pieces), finish(), "[DONE]"))
    refusal = said({"error": {"message": f"{'x' * 270} {KEY} is wrong", "headers": {"Authorization": KEY}}}, 401)
    server = serve([echo, refusal, streamed(sse(content("Hel"), {"error": {"message": f"not {KEY}"}}))])
    server.replies["/v1/models"] = said({"data": [{"id": f"model-of-{KEY}"}]})
    attached = attach(server.url, key=KEY, headers={"X-Team": "speech", "X-Auth": "Basic c3BlZWNoOnNwZWVjaA=="})
    events = [attached.ready(), *attached.ask(), *attached.ask(), *attached.ask()]
    shown = next(event.text for event in events if isinstance(event, TurnFinished))
    assert shown.replace("sk-•••", "•••") == "Your key is •••, or sk-verily, or •••."
    assert KEY[4:12] not in repr(events) + repr(attached.source.capabilities)
    assert server.asked()[0]["model"] == f"model-of-{KEY}", "the server itself hears what it said"
