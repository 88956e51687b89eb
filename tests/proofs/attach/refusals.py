"""Fields that servers refuse and errors in the shapes that they send, generated, with the words that must reach the
person."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.attach.servers import Reply, content

from .shapes import HELLO, KEY, Case, in_parts, well

# Refused fields

OPTIONAL = (
    "chat_template_kwargs", "stream_options", "max_tokens", "seed", "top_k", "min_p", "logprobs", "return_token_ids",
    "temperature", "top_p",
)  # fmt: skip
"""What vLLM is asked with."""
SENTENCES = (
    "{} is not supported", "Unsupported parameter: '{}'", "Unrecognized request argument supplied: {}",
    "Extra inputs are not permitted: {}", "unknown field `{}`", "got an unexpected keyword argument '{}'",
    "Additional properties are not allowed ('{}' was unexpected)", "Invalid value for {}",
)  # fmt: skip


def refusing(chance: Random) -> Case:
    """A server that refuses some fields, one after the other or all at once, by name or without."""
    fields = chance.sample(OPTIONAL, chance.randint(1, 4))
    shape = chance.choice((*_ERRORS, _fastapi, _by_param))
    sentence = chance.choice(SENTENCES)
    unnamed = chance.random() < 0.2
    status = chance.choice((400, 422)) if unnamed else chance.choice((400, 400, 422, 500, 501))
    at_once = chance.random() < 0.5
    newer = chance.random() < 0.5
    in_stream = not unnamed and chance.random() < 0.2

    def answer(asked: dict[str, Any]) -> Reply:
        there = [name for name in fields if name in asked]
        if newer is False and "max_tokens" in fields and "max_completion_tokens" in asked:
            there.append("max_completion_tokens")
        if not there:
            return well()
        named = there if at_once else there[:1]
        words = "Bad Request" if unnamed else sentence.format("', '".join(named))
        if shape in (_fastapi, _by_param) and not unnamed:
            body = shape(named[0])
        else:
            body = (shape if shape not in (_fastapi, _by_param) else _ERRORS[0])(words)
        if in_stream:
            return Reply([f"data: {json.dumps({'error': {'message': words, 'code': 400}})}\n\n".encode()])
        return Reply([body if isinstance(body, bytes) else json.dumps(body).encode()], status)

    settings = {"temperature": 0.5, "seed": 3, "top_k": 5}
    return Case(
        f"{fields} {shape.__name__} {status}",
        answer,
        HELLO,
        asked=2 + len(fields) + 2,
        settings=settings,
        words=[] if unnamed else list(fields),
    )


# Errors


def _fastapi(name: str) -> Any:
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]}


def _by_param(name: str) -> Any:
    return {
        "error": {"message": "Unsupported parameter.", "type": "invalid_request_error", "param": name, "code": None}
    }


def openai_error(words: str) -> Any:
    return {"error": {"message": words, "type": "invalid_request_error", "param": None, "code": None}}


_ERRORS: tuple[Callable[[str], Any], ...] = (
    openai_error,
    lambda words: {"error": words},
    lambda words: {"error": [words]},
    lambda words: {"error": {"message": [words]}},
    lambda words: {"error": {"error": {"message": words}}},
    lambda words: {"errors": [{"message": words}]},
    lambda words: {"errors": [words]},
    lambda words: [{"error": {"message": words, "status": "INVALID"}}],
    lambda words: {"detail": words},
    lambda words: {"detail": [{"loc": ["body", "messages"], "msg": words, "type": "value_error"}]},
    lambda words: {"detail": {"message": words}},
    lambda words: {"message": words},
    lambda words: {"object": "error", "message": words, "type": "BadRequestError", "code": 400},
    lambda words: {"msg": words},
    lambda words: {"error_msg": words, "error_code": 17},
    lambda words: {"title": "Bad Request", "detail": words, "status": 400},
    lambda words: {"error": {"type": "x", "description": words}},
    lambda words: {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps({"detail": words})}}},
    lambda words: {"error": json.dumps({"message": words})},
    lambda words: {"status": "error", "reason": words},
    lambda words: {"success": False, "whatever": {"said": words}},
    lambda words: words.encode(),
    lambda words: f"<!doctype html><html><head><title>{words}</title></head><body>x</body></html>".encode(),
    lambda words: f"<html><body><h1>{words}</h1></body></html>".encode(),
    lambda words: f"<p>{words}".encode(),
    lambda words: json.dumps(words).encode(),
    lambda words: b"\xef\xbb\xbf" + json.dumps(openai_error(words), indent=2).encode(),
    lambda words: f"error: {json.dumps({'code': 400, 'message': words})}\n\n".encode(),
    lambda words: f"data: {json.dumps(openai_error(words))}\n\n".encode(),
    lambda words: f'{{"error": {{"message": "{words}", "type": "cut'.encode(),
)


_ODD = [shape for shape in _ERRORS if shape("x") in ({"msg": "x"}, {"message": "x"}) or "error_msg" in str(shape("x"))]
"""What is an error with a status that says so, and not by itself."""


def failing(chance: Random) -> Case:
    """Words in any shape of an error, with any status, also behind a beginning of an answer; and a key among them."""
    words = f"the flux is {chance.randint(100, 999)} units off"
    shape = chance.choice(_ERRORS)
    body = shape(f"{words}, said {KEY}" if chance.random() < 0.5 else words)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    match chance.randrange(3):
        case 0:
            status = chance.choice((400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504))
            label = chance.choice(("application/json", "text/plain", "text/html", None))
            headers = {} if label is None else {"Content-Type": label}
            return Case(f"{status} {raw!r}", Reply([raw], status, headers), None, words=[words], asked=4)
        case 1 if shape not in _ODD:  # with status 200
            return Case(f"200 {raw!r}", Reply(in_parts(raw, chance)), None, words=[words], asked=4)
    line = _in_stream(shape, words, chance)
    before = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in [content("Hel")] * chance.randint(0, 1))
    parts = in_parts(before + line, chance)
    return Case(
        f"stream {line!r}", Reply(parts, headers={"Content-Type": "text/event-stream"}), None, words=[words], asked=4
    )


def _in_stream(shape: Callable[[str], Any], words: str, chance: Random) -> bytes:
    words = f"{words} for {KEY}" if chance.random() < 0.3 else words
    error = chance.choice(
        (
            json.dumps({"code": 500, "message": words}),
            json.dumps({"message": words}),
            json.dumps({"error": words}),
            json.dumps(openai_error(words)),
            json.dumps(words),
        )
    )
    nested = chance.choice(
        (
            json.dumps({"error": {"message": words, "code": 500}}),
            json.dumps(openai_error(words)),
            json.dumps({"error": words}),
            json.dumps({"object": "error", "message": words}),
        )
    )
    return chance.choice(
        (
            f"error: {error}\n\n",
            f"error: {words}\n\n",
            f"event: error\ndata: {error}\n\n",
            f"event: error\ndata: {words}\n\n",
            f"data: {nested}\n\n",
            f"data: {nested}\n\ndata: [DONE]\n\n",
            f"{nested}\n",
            f"data: {nested}",
        )
    ).encode()
