"""A hub on this machine: the part of the real one's HTTP interface that ``huggingface_hub`` uses to fetch models,
with the troubles that a long download meets."""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit

LARGE = 100_000
"""Files from this size on are stored apart from git, under their sha256, as the hub stores weights."""

PATIENCE = {"RateLimit": '"resolvers";r=499;t=215'}
"""What the hub says with every answer: how often it may be asked yet, and the seconds until it counts anew."""


@dataclass
class Repo:
    """A model with its files at one commit, and who may read it."""

    files: dict[str, bytes]
    gated: bool = False
    commit: str = ""

    def __post_init__(self) -> None:
        joined = b"".join(name.encode() + content for name, content in sorted(self.files.items()))
        self.commit = self.commit or hashlib.sha1(joined).hexdigest()


@dataclass
class Trouble:
    """What goes wrong while one file's content is sent."""

    cut_after: list[int] = field(default_factory=list)
    """Each of the next responses ends after so many bytes."""
    bytes_per_second: float | None = None
    ignores_ranges: bool = False
    damages: bool = False
    statuses: list[int] = field(default_factory=list)
    """Each of the next responses is this error."""


@dataclass(frozen=True)
class Sent:
    """One response with content."""

    name: str
    start: int
    num_bytes: int
    authorized: bool


class FakeHub:
    """Serves ``repos`` at ``endpoint``. Content is sent from another host name, as the real hub's is."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.troubles: dict[str, Trouble] = {}
        self.instead: dict[str, tuple[int, dict[str, str], bytes]] = {}
        """What answers to paths that begin with a word, in this server's place: status, headers and content."""
        self.tokens: dict[str, str] = {}
        """Access tokens and whom they belong to; nobody has accepted a licence."""
        self.accepted: set[str] = set()
        """Users who have."""
        self.sent: list[Sent] = []
        self.num_requests = 0
        self.lock = Lock()

        class Handler(_Handler):
            hub = self

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def forget_requests(self) -> None:
        with self.lock:
            self.sent.clear()
            self.num_requests = 0

    def sent_of(self, name: str) -> list[Sent]:
        with self.lock:
            return [each for each in self.sent if each.name == name]


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *arguments: Any) -> None:
        pass

    def _answer(self) -> None:
        with self.hub.lock:
            self.hub.num_requests += 1
        path = urlsplit(self.path).path
        if (said := self.hub.instead.get(path.split("/")[1])) is not None:
            self._send(*said)
        elif path == "/api/whoami-v2":
            self._whoami()
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)", path):
            self._model_info(match[1])
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._resolve(match[1], match[2], match[3])
        elif match := re.fullmatch(r"/content/([^/]+/[^/]+)/(.+)", path):
            self._content(self.hub.repos[match[1]], match[2])
        else:
            self._error(404, "EntryNotFound")

    def _user(self) -> str | None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return self.hub.tokens.get(token)

    def _whoami(self) -> None:
        user = self._user()
        if user is None:
            self._error(401)
        else:
            self._json({"name": user, "type": "user"})

    def _repo(self, name: str) -> Repo | None:
        """The repository, or None after an answer that says why not."""
        if self.headers.get("Authorization") and self._user() is None:
            self._error(401, message="Invalid credentials in Authorization header")
            return None
        repo = self.hub.repos.get(name)
        if repo is None:
            self._error(404 if self._user() else 401, "RepoNotFound", "Repository not found")
        return repo

    def _model_info(self, name: str) -> None:
        repo = self._repo(name)
        if repo is None:
            return
        siblings = []
        for file, content in repo.files.items():
            entry: dict[str, Any] = {
                "rfilename": file,
                "size": len(content),
                "blobId": hashlib.sha1(content).hexdigest(),
            }
            if len(content) >= LARGE:
                entry["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
            siblings.append(entry)
        gated = "manual" if repo.gated else False
        self._json({"_id": "1", "id": name, "modelId": name, "sha": repo.commit, "siblings": siblings, "gated": gated})

    def _resolve(self, name: str, revision: str, file: str) -> None:
        repo = self._repo(name)
        if repo is None:
            return
        if repo.gated and self._user() not in self.hub.accepted:
            self._error(403 if self._user() else 401, "GatedRepo", "Access to this model is restricted")
        elif revision not in ("main", repo.commit):
            self._error(404, "RevisionNotFound")
        elif file not in repo.files:
            self._error(404, "EntryNotFound")
        else:
            content = repo.files[file]
            large = len(content) >= LARGE
            etag = (hashlib.sha256 if large else hashlib.sha1)(content).hexdigest()
            headers = {"X-Repo-Commit": repo.commit, "ETag": f'"{etag}"'}
            if not large:
                self._send(200, headers, content)
                return
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(content))}
            self._send(302, headers | {"Location": f"http://localhost:{self.hub.port}/content/{name}/{file}"}, b"")

    def _content(self, repo: Repo, file: str) -> None:
        content, trouble = repo.files[file], self.hub.troubles.setdefault(file, Trouble())
        if trouble.statuses:
            self._error(trouble.statuses.pop(0))
            return
        start = 0
        if (match := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))) and not trouble.ignores_ranges:
            start = int(match[1])
        if trouble.damages:
            content = content[:-1] + bytes([content[-1] ^ 1])
        headers = {"Content-Length": str(len(content) - start), "Accept-Ranges": "bytes"}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._head(206 if start else 200, headers)
        end = min(len(content), start + trouble.cut_after.pop(0)) if trouble.cut_after else len(content)
        sent = self._send_slowly(content[start:end], trouble)
        with self.hub.lock:
            self.hub.sent.append(Sent(file, start, sent, "Authorization" in self.headers))
        self.close_connection = True

    def _send_slowly(self, content: bytes, trouble: Trouble) -> int:
        """Returns how much was sent before the other side hung up. A test may end the trouble meanwhile."""
        sent = 0
        try:
            while sent < len(content):
                rate = trouble.bytes_per_second
                piece_size = len(content) if rate is None else max(1, int(rate * 0.02))
                sent += self.wfile.write(content[sent : sent + piece_size])
                if rate is not None:
                    time.sleep(0.02)
        except OSError:
            pass
        return sent

    def _error(self, status: int, code: str | None = None, message: str | None = None) -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": message}
        self._send(status, {key: value for key, value in headers.items() if value is not None}, b"{}")

    def _json(self, value: object) -> None:
        self._send(200, {"Content-Type": "application/json"}, json.dumps(value).encode())

    def _send(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self._head(status, headers | {"Content-Length": str(len(content))})
        if self.command == "GET":
            self.wfile.write(content)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (PATIENCE | headers).items():
            self.send_header(name, value)
        self.end_headers()
