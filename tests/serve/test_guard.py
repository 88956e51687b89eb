"""Who may ask, and what a request may look like before its JSON is read."""

from __future__ import annotations

import socket

import pytest

from dflash_tui.serve import web
from dflash_tui.serve.server import AddressFailure, ServeOptions, is_local, listen

from .conftest import QUESTION, Serve, Served

KEY = "a-key-of-some-length"


def test_a_key_is_needed_everywhere_but_for_health(serve: Serve) -> None:
    with serve(ServeOptions(port=0, key=KEY)) as served, served.http() as http:
        assert http.get("/health").status_code == 200
        for path in ("/v1/models", "/dflash", "/nowhere"):
            for headers in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": KEY},
                {"Authorization": "Bearer é"},
            ):
                answer = http.get(path, headers={name: value.encode() for name, value in headers.items()})
                assert answer.status_code == 401 and answer.json()["error"]["code"] == "invalid_api_key"
                assert answer.headers["www-authenticate"] == "Bearer" and KEY not in answer.text
        bearer = {"Authorization": f"Bearer {KEY}"}
        assert http.get("/v1/models", headers=bearer).json()["data"]
        assert http.get("/v1/models", headers={"X-Api-Key": KEY}).status_code == 200, "as llama.cpp takes it"
        assert served.post().status_code == 401 and served.engine.asked == []


STRANGERS: tuple[dict[str, str], ...] = (
    {"Host": "evil.example"}, {"Host": "localhost.evil.example"}, {"Host": "internal"}, {"Host": "evil.local"},
    {"Host": "127.0.0.1.evil.example"}, {"Host": "[::1"}, {"Origin": "http://evil.example"}, {"Origin": "null"},
    {"Origin": "http://127.0.0.1:9"},
)  # fmt: skip
FRIENDS: tuple[dict[str, str], ...] = (
    {"Host": ""}, {"Host": "localhost:9999"}, {"Host": "LocalHost.:80"}, {"Host": "host.docker.internal:8000"},
    {"Host": "host.containers.internal"}, {"Host": "chat.localhost:1"}, {"Host": "172.17.0.1:8000"},
    {"Host": f"{socket.gethostname()}.local"}, {"Host": "[::1]:80"}, {"Origin": "vscode-file://app"},
    {"Host": "localhost", "Origin": "http://localhost"},
)  # fmt: skip


def test_web_pages_reach_nothing_here(served: Served) -> None:
    with served.http() as http:
        for headers in (*STRANGERS, *FRIENDS):
            answer = http.get("/v1/models", headers=headers)
            assert answer.status_code == (403 if headers in STRANGERS else 200), headers
            assert not [name for name in answer.headers if name.startswith("access-control")]
            if "Host" in headers and headers in STRANGERS:
                assert "127.0.0.1" in answer.text and "--host" in answer.text, "the way to allow it"


def test_addresses_as_clients_spell_them(served: Served) -> None:
    looked_at = ("models/", "/v1/models", "models", "v1/v1/models//", "v1/models/demo/gemma4-tiny/", "v1/health/")
    asked = ("v1/chat/completions/", "chat/completions", "/v1//chat/completions", "v1/v1/chat/completions")
    with served.http(follow_redirects=False) as http:
        for path in (*looked_at, "dflash/"):
            assert http.get(f"{served.url}/{path}").status_code == 200, path
        for path in asked:
            answer = http.post(f"{served.url}/{path}", json={"messages": QUESTION, "max_tokens": 3})
            assert answer.status_code == 200 and answer.json()["choices"][0]["message"]["content"], path


def test_addresses_and_methods_that_are_not_there(served: Served) -> None:
    with served.http() as http:
        for answer, status, words in (
            (http.get("/v1/nowhere"), 404, "/v1/chat/completions"),
            (http.get("/v1/chat/completions"), 405, "takes no GET"),
            (http.post("/v1/models"), 405, "takes no POST"),
            (http.get("/v1/models/gpt-9"), 404, "demo/gemma4-tiny"),
            (http.post("/v1/completions", content=b"{"), 400, "not JSON"),
            (http.post("/v1/completions", json={"prompt": "x", "n": 2}), 400, "one answer"),
        ):
            error = answer.json()["error"]
            assert answer.status_code == status and words in error["message"]
            assert error.keys() == {"message", "type", "param", "code"}


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_beyond_the_bound_is_not_read(served: Served, announced: bool) -> None:
    body = b'{"messages": "' + b"x" * web.MAX_BODY_BYTES + b'"}'
    with served.http() as http:
        answer = http.post("/v1/chat/completions", content=body if announced else iter([body[:9], body[9:]]))
    assert answer.status_code == 413 and "4 MiB" in answer.text


def test_a_body_that_never_comes(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "BODY_SECONDS", 0.2)
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as slow:
        slow.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n{{".encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 408 ")
    assert served.post(messages=QUESTION).status_code == 200


def test_which_addresses_others_reach() -> None:
    assert [is_local(host) for host in ("127.0.0.1", "localhost", "127.1.2.3", "::1")] == [True] * 4
    assert [is_local(host) for host in ("0.0.0.0", "::", "10.0.0.1")] == [False] * 3
    with pytest.raises(AddressFailure, match="no address"):
        is_local("no.such.host.invalid")


def test_a_port_that_is_taken() -> None:
    with listen("127.0.0.1", 0) as taken:
        assert taken.proto == socket.IPPROTO_TCP, "else asyncio leaves Nagle's delay of 40 ms on"
        port = taken.getsockname()[1]
        with pytest.raises(AddressFailure, match=f"Port {port} of 127.0.0.1 is in use"):
            listen("127.0.0.1", port)
    with pytest.raises(AddressFailure, match="Nobody can listen"):
        listen("203.0.113.1", 0)
