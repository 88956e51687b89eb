"""Finds a server's own words in an error of any shape: JSON of any nesting, a web page, or text. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .names import ERRORS, FAILED, NOTHING, SILENT, named, plain_name
from .untrusted import MOST_WORDS, mapping, parsed, sentence, words

SAYING = (
    "message", "error", "errors", "detail", "details", "msg", "error_description", "error_message", "error_msg",
    "errormessage", "errmsg", "description", "reason", "title", "fault", "faultstring", "cause", "exception", "info",
    "text", "content", "response",
)  # fmt: skip
"""Fields in which errors hold their words, the best first."""
_BESIDE = ("object", "id", "request_id", "trace_id", "timestamp", "path", "url", "instance", "documentation_url")
_BROKEN_JSON = re.compile(r"[{\[]\s*[\"{\[]")
_MESSAGE = re.compile(r'"(?:message|error|detail)"\s*:\s*"((?:[^"\\]|\\.)+)')
"""Matches such a field in JSON that was cut off."""
_DEEPEST = 6
_MOST = 6
"""How many sentences of one error are told."""


def words_of(error: Any) -> str:
    """The error's words as one sentence; empty where there are none. ``error`` is a body, or its JSON."""
    if isinstance(error, bytes):
        error = error[: 64 * MOST_WORDS].decode("utf-8", "replace")
    texts = dict.fromkeys(text for text in _texts_in(error, _DEEPEST) if text.strip())
    joined = "; ".join(text.strip().rstrip(".") for text in list(texts)[:_MOST])
    return sentence(joined) if joined else ""


def quoted(text: str) -> str:
    """The words of what was not understood, or all of it where none are found."""
    return words_of(text) or sentence(text)


def error_in(data: Mapping[str, Any], ours: list[Mapping[str, Any]]) -> Any:
    """The part of an event that is an error; None for an event that is none."""
    for candidate in (data, *ours, *(mapping(each.get(name)) for each in ours for name in ("delta", "message"))):
        fields = named(candidate)
        for name in ERRORS & fields.keys():
            if (error := fields[name]) and not _is_fine(error):
                return candidate if isinstance(error, bool | int | float) else error
    fields = {} if "choices" in data or "dflash" in data else named(data)
    called = {words(fields.get(name)).lower() for name in ("object", "type", "status", "event")}
    failed = called & FAILED or any(fields.get(name) is False for name in ("success", "ok"))
    return data if failed or (fields and status_in(fields, 0)) else None


def _is_fine(error: Any) -> bool:
    """Whether what stands in an error's place says that there is none."""
    fields = named(error) if isinstance(error, dict) else {}
    code = next((fields[name] for name in ("code", "status_code", "status") if name in fields), None)
    text = " ".join(words_in(error, _DEEPEST))
    return code in (0, 200, "0", "200") or (
        not isinstance(error, bool | int | float) and not text and not fields.get("type")
    )


def words_in(error: Any, deep: int) -> Iterator[str]:
    """The words in a value that are said to somebody."""
    if isinstance(error, str):
        if not NOTHING.fullmatch(error.strip()):
            yield error.strip()
    elif isinstance(error, list) and deep:
        for each in error[:_MOST]:
            yield from words_in(each, deep - 1)
    elif isinstance(error, dict) and deep:
        for name, value in error.items():
            if plain_name(name) not in SILENT:
                yield from words_in(value, deep - 1)


def status_in(body: Any, otherwise: int) -> int:
    """The HTTP status that an error names for itself."""
    for candidate in (mapping(body), mapping(mapping(body).get("error"))):
        for name in ("code", "status", "status_code", "statusCode", "http_status"):
            code = candidate.get(name)
            if isinstance(code, str) and code.isdecimal():
                code = int(code[:4])
            if isinstance(code, int) and 400 <= code <= 599:
                return code
    return otherwise


def _texts_in(error: Any, deep: int) -> Iterator[str]:
    if isinstance(error, str):
        yield from _text(error, deep)
    elif isinstance(error, list) and deep:
        for each in error[:_MOST]:
            yield from _texts_in(each, deep - 1)
    elif isinstance(error, dict) and deep:
        yield from _object({str(name).lower(): value for name, value in error.items()}, deep - 1)


def _object(fields: Mapping[str, Any], deep: int) -> Iterator[str]:
    location = fields.get("loc")
    if isinstance(location, list) and words(fields.get("msg")):  # FastAPI's complaint about one field of a question
        where = ".".join(str(each) for each in location if each != "body")
        yield f"{where}: {words(fields['msg'])}" if where else words(fields["msg"])
        return
    for name in SAYING:
        texts = list(_texts_in(fields.get(name), deep))
        if any(text.strip() for text in texts):
            yield from texts
            break
    else:
        for name, value in fields.items():
            if name not in _BESIDE:
                yield from _texts_in(value, deep)
        return
    field = words(fields.get("param"))
    if field and field not in " ".join(texts):
        yield field
    for name in ("metadata", "extra", "context"):
        yield from _texts_in(mapping(fields.get(name)).get("raw"), deep)


def _text(text: str, deep: int) -> Iterator[str]:
    start = text.lstrip()
    if start[:1] in ("{", "[") and deep:
        try:
            yield from _texts_in(parsed(start), deep - 1)
            return
        except ValueError:
            pass
    if _BROKEN_JSON.match(start):
        match = _MESSAGE.search(start)
        yield match[1] if match else ""
    else:
        yield _page(start) if start[:1] == "<" else text


def _page(page_text: str) -> str:
    """A web page's title, or its first heading, or all that can be read of it."""
    page = page_text[: 64 * MOST_WORDS]
    for name in ("title", "h1", "h2"):
        match = re.search(rf"<{name}\b[^<>]*>((?:(?!<{name}\b).)*?)</{name}", page, re.IGNORECASE | re.DOTALL)
        if match and (text := _plain(match[1])):
            return text
    return _plain(re.sub(r"(?is)<(script|style)\b.*?(</\1>|$)", " ", page))


def _plain(marked: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>?", " ", marked)).split())
