"""``python -m measure.app.tape_server llama.cpp|vllm [--pace 1000] [--seconds 60]``: a server that plays a recorded
answer in a loop, in the words of llama.cpp (an event for each token, with the counters) or of vLLM (an event for each
round, and the count at the end). It prints its port."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from engine.events import Step
from support.tape import endless, recorded_steps

MODEL = "tape"
PAGES: dict[str, dict[str, dict[str, Any]]] = {
    "llama.cpp": {"/props": {"default_generation_settings": {"n_ctx": 131072}, "build_info": "b11434-tape"}},
    "vllm": {"/version": {"version": "0.33.0"}},
}


def events(dialect: str, steps: Iterator[Step], seconds: float) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yields each event with the seconds at which it comes."""
    tokens = drafted = accepted = 0
    rounds: list[tuple[int, int]] = []
    for step in steps:
        if step.time > seconds:
            break
        drafted += len(step.draft)
        accepted += step.num_accepted
        texts = [token.text for token in step.emitted]
        if dialect == "vllm":
            rounds += [(step.num_accepted, len(step.draft))] if step.draft else []
            tokens += len(texts)
            ids = [token.id for token in step.emitted]
            yield step.time, _chunk("".join(texts)) | {"choices": [_choice("".join(texts)) | {"token_ids": ids}]}
            continue
        for text in texts:
            tokens += 1
            counters = {"draft_n": drafted, "draft_n_accepted": accepted} if drafted else {}
            times = {"predicted_n": tokens, "predicted_ms": 1000 * step.time, "prompt_n": 40, "prompt_ms": 1.0}
            yield step.time, _chunk(text) | {"timings": times | counters}
    yield seconds, _chunk("") | {"choices": [_choice("") | {"finish_reason": "stop"}]}
    if dialect == "vllm":
        usage = {"prompt_tokens": 40, "completion_tokens": tokens, "total_tokens": 40 + tokens}
        told = {"per_step_accepted": [kept for kept, _ in rounds], "per_step_drafted": [most for _, most in rounds]}
        totals = {
            "num_spec_steps": len(rounds), "num_accepted_draft_tokens": accepted, "num_draft_tokens": drafted,
        }  # fmt: skip
        metrics = {"speculative_decoding": told | totals}
        yield seconds, _chunk("") | {"choices": [], "usage": usage, "metrics": metrics}


def _chunk(text: str) -> dict[str, Any]:
    return {"id": "tape", "object": "chat.completion.chunk", "model": MODEL, "choices": [_choice(text)]}


def _choice(text: str) -> dict[str, Any]:
    return {"index": 0, "delta": {"content": text}, "finish_reason": None}


class TapeHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    dialect, pace, seconds = "llama.cpp", 1000.0, 60.0

    def do_GET(self) -> None:
        owner = {"llama.cpp": "llamacpp"}.get(self.dialect, self.dialect)
        pages = {**PAGES[self.dialect], "/v1/models": {"data": [{"id": MODEL, "owned_by": owner}]}}
        body = json.dumps(pages.get(self.path, {})).encode()
        self.send_response(200 if self.path in pages else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        started = time.monotonic()
        for due, said in events(self.dialect, endless(recorded_steps(), 1, self.pace), self.seconds):
            time.sleep(max(started + due - time.monotonic(), 0.0))
            self._write(b"data: " + json.dumps(said).encode() + b"\n\n")
        self._write(b"data: [DONE]\n\n")
        self._write(b"")

    def _write(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores errors: a chat that leaves is none."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dialect", choices=sorted(PAGES))
    parser.add_argument("--pace", type=float, default=TapeHandler.pace, help="tokens per second")
    parser.add_argument("--seconds", type=float, default=TapeHandler.seconds)
    options = parser.parse_args()
    TapeHandler.dialect, TapeHandler.pace, TapeHandler.seconds = options.dialect, options.pace, options.seconds
    server = Server(("127.0.0.1", 0), TapeHandler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
