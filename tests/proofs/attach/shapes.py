"""Answers in shapes that servers send, generated: each with the text that it holds, or the words that must reach the
person. By kinds: framing, content, signs of life."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.attach.servers import Answer, Part, Reply, content, finish

KEY = "sk-live-3f9a81c27e5d4b60"
TEXTS = (
    "Hello there",
    "def f():\n    return 1\n",
    "grüße 🛰️ 实用 ✅",
    "a < b and </b> > c",
    "  indented",
    "data: [DONE] is text",
    "x",
)
THOUGHT = "Let me see… 🤔"
LABELS = (
    "text/event-stream", "Text/Event-Stream; charset=UTF-8", "text/plain; charset=utf-8", "application/json",
    "application/x-ndjson", "application/octet-stream", "text/html", "nonsense", None,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    what: str
    answer: Answer
    """Of the server."""
    text: str | None = None
    """The whole answer; None where there is none, and a sentence must say why."""
    thought: str = ""
    words: Sequence[str] = ()
    """In that sentence, or in the notices."""
    asked: int = 1
    """Questions that it takes at most."""
    settings: dict[str, Any] = field(default_factory=dict)


def split(text: str, chance: Random) -> list[str]:
    """In a few pieces."""
    cuts = sorted(chance.sample(range(1, len(text)), min(len(text) - 1, chance.randint(0, 5))))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def in_parts(body: bytes, chance: Random) -> list[Part]:
    size = chance.choice((1, 3, 17, 4000, 100000))
    return [body[at : at + size] for at in range(0, len(body), size)]


# Framing


def framing(chance: Random) -> Case:
    """The same events, written as differently as people write them."""
    text = chance.choice(TEXTS)
    events: list[dict[str, Any]] = [content(piece) for piece in split(text, chance)]
    if chance.random() < 0.4:
        events.insert(0, {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]})
    if chance.random() < 0.3:
        for place in range(len(events), 0, -1):
            other = {"choices": [{"index": 1, "delta": {"content": "OTHER"}, "finish_reason": None}]}
            events.insert(place, other) if chance.random() < 0.5 else events[place - 1]["choices"].append(
                other["choices"][0]
            )
    ends, says_done = chance.choice(((True, True), (True, False), (False, True)))
    events += [finish()] if ends else []
    body, what = chance.choice((_events, _events, _events, _lines, _array, _whole))(text, events, says_done, chance)
    whole = ends or (says_done and what not in ("lines", "array")) or what == "one object"
    label = chance.choice(LABELS)
    tail: list[Part] = ["hang"] if what != "array" and whole and chance.random() < 0.3 else []
    headers = {} if label is None else {"Content-Type": label}
    reply = Reply([*in_parts(body, chance), *tail], headers=headers)
    return Case(f"{what}, {label}, {tail}", reply, text if whole else None, words=() if whole else ["in the middle"])


Framed = tuple[bytes, str]


def _json(data: Any, chance: Random) -> str:
    return json.dumps(data, ensure_ascii=chance.random() < 0.5)


def _events(text: str, events: Sequence[dict[str, Any]], done: bool, chance: Random) -> Framed:
    end = chance.choice(("\n", "\n", "\r\n", "\r"))
    name = chance.choice(("data: ", "data: ", "data:", "data:  ", "Data: "))
    blank = chance.random() < 0.8
    said: list[str] = []
    for event in [*events, *(["[DONE]"] if done else [])]:
        while chance.random() < 0.3:
            said.append(
                chance.choice((": ping", ":", "id: 7", "id:", "retry: 3000", "event: message", f": hm{end}", ""))
            )
        line = event if isinstance(event, str) else _json(event, chance)
        if isinstance(event, dict) and blank and chance.random() < 0.1:
            line = json.dumps(event, indent=1).replace("\n", f"{end}data: ")
        said.append(name + line + (end if blank else ""))
    body = end.join(said) + chance.choice((end, end + end, ""))
    first = chance.choice(("", "", "\ufeff", "\n", ": hello\n\n", "retry: 100\n\n"))
    return (first + body).encode(), f"events of {end!r}, blank: {blank}, done: {done}"


def _lines(text: str, events: Sequence[dict[str, Any]], done: bool, chance: Random) -> Framed:
    return "\n".join(_json(event, chance) for event in events).encode() + chance.choice((b"", b"\n")), "lines"


def _array(text: str, events: Sequence[dict[str, Any]], done: bool, chance: Random) -> Framed:
    return json.dumps(list(events), indent=chance.choice((None, 2))).encode(), "array"


def _whole(text: str, events: Sequence[dict[str, Any]], done: bool, chance: Random) -> Framed:
    message = {"role": "assistant", "content": text}
    reason = chance.choice(({"finish_reason": "stop"}, {}, {"finish_reason": None}))
    data = {"object": "chat.completion", "choices": [{"index": 0, "message": message, **reason}]}
    body = json.dumps(data, indent=chance.choice((None, 1)), ensure_ascii=False).encode()
    if chance.random() < 0.4:
        return b"data: " + json.dumps(data).encode() + b"\n\n", "one object"
    return chance.choice((b"", b"\xef\xbb\xbf", b"\n")) + body, "one object"


# Content


def shaped(chance: Random) -> Case:
    """A thought and a text in any of the shapes that messages take; or something that is neither."""
    if chance.random() < 0.3:
        return _no_text(chance)
    text = chance.choice(TEXTS)
    thought = chance.choice(("", THOUGHT))
    deltas: list[dict[str, Any]] = []
    tagged = chance.random() < 0.3
    tag = chance.choice(("think", "thinking"))
    if thought and not tagged:
        shape = chance.choice(_THOUGHTS)
        deltas += [shape(piece) for piece in _pieces(thought, chance)]
    written = f"<{tag}>\n{thought}</{tag}>\n\n{text.lstrip()}" if thought and tagged else text
    text = text.lstrip() if thought and tagged else text
    shapes = _PLAIN if thought and tagged else _TEXTS
    shape = chance.choice(shapes)
    deltas += [shape(piece) for piece in _pieces(written, chance)]
    place = chance.choice(("delta", "delta", "message"))
    choices = [{"index": 0, place: {"role": "assistant", **delta}, "finish_reason": None} for delta in deltas]
    if place == "message":  # each a part, until one ends it
        choices = (
            [{"index": 0, "delta": None, **choice} for choice in choices][:1]
            if len(deltas) == 1
            else [{"index": 0, "delta": delta} for delta in deltas]
        )
    reason = chance.choice(("stop", "stop", "eos", "STOP", "end_turn", "null"))
    events: list[Any] = [{"choices": [choice]} for choice in choices]
    events.append(finish(reason))
    return Case(f"{place} of {deltas[:3]}", _stream(events, chance), text, thought)


def _pieces(text: str, chance: Random) -> list[str]:
    """Of which some end in the middle of a surrogate pair."""
    units = text.encode("utf-16-le")
    count = len(units) // 2
    cuts = sorted(chance.sample(range(1, count), min(count - 1, chance.randint(0, 6)))) if count > 1 else []
    return [
        units[2 * a : 2 * b].decode("utf-16-le", "surrogatepass")
        for a, b in zip([0, *cuts], [*cuts, count], strict=True)
    ]


Delta = Callable[[str], dict[str, Any]]
_PLAIN: tuple[Delta, ...] = (
    lambda text: {"content": text},
    lambda text: {"content": [{"type": "text", "text": text}]},
)
_TEXTS: tuple[Delta, ...] = (
    *_PLAIN,
    lambda text: {"content": text, "tool_calls": [], "refusal": None, "reasoning_content": None},
    lambda text: {"content": [{"type": "output_text", "text": text, "annotations": []}]},
    lambda text: {"content": [{"text": text}]},
    lambda text: {"content": [text]},
    lambda text: {"content": {"type": "text", "text": text}},
    lambda text: {"content": [{"type": "text", "text": {"value": text, "annotations": []}}]},
    lambda text: {"content": [{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": text}]},
    lambda text: {"content": None, "refusal": text},
    lambda text: {"content": "", "refusal": text},
    lambda text: {"content": [{"type": "refusal", "refusal": text}]},
    lambda text: {"content": None, "audio": {"id": "a", "transcript": text}},
    lambda text: {"content": [], "text": text},
)
_THOUGHTS: tuple[Delta, ...] = (
    lambda text: {"content": None, "reasoning_content": text},
    lambda text: {"content": "", "reasoning": text},
    lambda text: {"reasoning_content": text, "reasoning": text},
    lambda text: {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]},
    lambda text: {"content": [{"type": "thinking", "thinking": text, "signature": "abc"}]},
    lambda text: {"content": [{"type": "reasoning", "text": text}]},
    lambda text: {"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}]},
    lambda text: {"content": "", "reasoning_details": [{"type": "reasoning.text", "text": text, "format": "x"}]},
    lambda text: {"thinking": text},
)


def _no_text(chance: Random) -> Case:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    deltas: tuple[tuple[dict[str, Any], str, str], ...] = (
        ({"content": None, "tool_calls": [call]}, "tool_calls", "get_weather"),
        ({"tool_calls": call}, "stop", "get_weather"),
        ({"function_call": {"name": "get_weather", "arguments": "{}"}}, "function_call", "get_weather"),
        ({"content": [{"type": "tool_use", "id": "a", "name": "get_weather", "input": {}}]}, "tool_use", "get_weather"),
        ({"content": [{"type": "function_call", "name": "get_weather"}]}, "stop", "get_weather"),
        ({"content": "", "reasoning_content": THOUGHT}, "stop", "gave no answer"),
        ({"content": "", "reasoning_content": THOUGHT}, "length", "cut off"),
        ({"content": f"<think>{THOUGHT}"}, "length", "cut off"),
        ({"content": f"<think>{THOUGHT}</think>\n\n"}, "stop", "gave no answer"),
        ({"content": None}, "content_filter", "filter"),
        ({"content": "Hel"}, "content_filter", "filter"),
        ({"content": "Hel"}, "error", "broke the answer off"),
        ({"content": ""}, "abort", "abort"),
        ({"content": ""}, "stop", "empty answer"),
        ({}, "stop", "empty answer"),
        ({"content": []}, "stop", "empty answer"),
        ({"content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}, "stop", "an image"),
        ({"images": [{"type": "image_url"}], "content": ""}, "stop", "an image"),
        ({"audio": {"data": "AAAA"}}, "stop", "audio"),
        ({"content": [{"type": "hologram", "id": 7}]}, "stop", "hologram"),
        ({"content": "\n\n"}, "stop", "empty answer"),
        ({"content": 7}, "stop", "empty answer"),
    )
    delta, reason, words = chance.choice(deltas)
    place = chance.choice(("delta", "message"))
    choice = {"index": 0, place: delta, "finish_reason": reason if place == "message" else None}
    events = [{"choices": [choice]}, *([finish(reason)] if place == "delta" else [])]
    return Case(f"{place} {delta}, {reason}", _stream(events, chance), None, words=[words])


def _stream(events: Sequence[Any], chance: Random) -> Reply:
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in [*events]) + "data: [DONE]\n\n"
    return Reply(in_parts(body.encode(), chance), headers={"Content-Type": "text/event-stream"})


HELLO = "Hello there"


def well() -> Reply:
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in (content("Hello"), content(" there"), finish()))
    return Reply([body.encode() + b"data: [DONE]\n\n"], headers={"Content-Type": "text/event-stream"})


# Signs of life


FIRST, SILENCE = 2.5, 1.0
"""Seconds that are waited for a first token, and between two."""


def living(chance: Random) -> Case:
    """Pauses, filled with signs of life or not."""
    role = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
    signs = (
        b": keep-alive\n\n",
        b":\n\n",
        b"event: ping\ndata: {}\n\n",
        b"retry: 10\n\n",
        b"data:\n\n",
        sse_of(role),
        b": OPENROUTER PROCESSING\n\n",
        b"\n",
        sse_of({"choices": []}),
        sse_of({"choices": [], "prompt_progress": {"total": 90, "processed": 20}}),
    )
    sign = chance.choice(signs)
    opening: list[Part] = [sse_of(role)] if chance.random() < 0.7 else []
    end = sse_of(finish()) + b"data: [DONE]\n\n"
    match chance.randrange(5):
        case 0:  # a long wait before the first token, with signs
            parts: list[Part] = [*opening, *[0.3, sign] * 4, sse_of(content("Hello")), sse_of(content(" there")), end]
        case 1:  # or without
            parts = [*opening, 1.3, sse_of(content("Hello")), sse_of(content(" there")), end]
        case 2:  # between two tokens, with signs
            parts = [*opening, sse_of(content("Hello")), *[0.3, sign] * 4, sse_of(content(" there")), end]
        case 3:  # nothing comes any more
            parts = [*opening, sse_of(content("Hello")), "hang"]
            return Case("silence", Reply(parts), None, words=["fallen silent", f"{SILENCE:g} seconds"])
        case _:
            parts = [*opening, *[0.3, sign] * 20, "hang"]
            return Case("no token", Reply(parts), None, words=["fallen silent", f"{FIRST:g} seconds"])
    return Case(f"signs {sign!r}", Reply(parts, headers={"Content-Type": "text/event-stream"}), HELLO)


def sse_of(event: Any) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()
