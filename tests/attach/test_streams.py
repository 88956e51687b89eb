"""Streams as servers send them, generated with what they hold: the text is whole and said once, a thought is one, an
error is told in its own words, and what isn't understood is told, too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dflash_tui.attach.dialects import OpenAi, ServerFacts
from dflash_tui.attach.failures import refused
from dflash_tui.attach.server_turn import ReachedServer, ServerTurn
from dflash_tui.attach.thoughts import PAIRS
from dflash_tui.attach.transport.connection import Connection, Patience
from dflash_tui.attach.untrusted import harmless
from dflash_tui.core.settings.servers import ServerAddress
from engine.commands import Ask, GenerationSettings, Message
from engine.events import EngineError, Notice, Step, TurnFinished, event_from_dict, event_to_dict

from ..pace import IN_CI

KEY = "sk-live-3f9a81c27e5d4b60"
WORDS = "the flux is 714 units off"
TEXTS = (
    "Hello there", "def f():\n    return 1\n", "grüße 🛰️ 实用 ✅", "a < b and </b> > c", "  indented",
    "data: [DONE] is text", "Use `</think>` to end it.", "```\n<think>\nx\n</think>\n```\nis code", "x",
    "42", '{"choices": "text"}', "3 is <", "a list [th", "<thin",
)  # fmt: skip
THOUGHTS = ("hm, well", "Let me see… 🤔\n\nYes.", "I end with `</think>` then")


class Wire(Connection):
    """A connection on which the answer's bytes stand already."""

    parts: Sequence[bytes] = ()
    refuses: Mapping[str, str] = {}
    """What it says of the fields that it refuses, by their names."""

    def __init__(self) -> None:
        super().__init__(ServerAddress("http://gpu-box:8000", key=KEY), Patience())

    @asynccontextmanager
    async def _asked(self, path: str, body: Mapping[str, Any], clock: Any) -> AsyncIterator[Any]:
        for field in self.refuses.keys() & body.keys():
            raise refused(self.where, 400, {}, {"error": {"message": self.refuses[field]}})
        yield self

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part


@cache
def wire() -> Wire:
    return Wire()


def heard(body: bytes, sizes: Sequence[int] = (40,), refuses: Mapping[str, str] | None = None) -> list[Any]:
    """The events of one answer, as the source tells them. ``sizes``: of the pieces that the bytes come in."""
    parts, place, turn, events = list[bytes](), 0, 0, list[Any]()
    while place < len(body):
        parts.append(body[place : place + sizes[turn % len(sizes)]])
        place, turn = place + len(parts[-1]), turn + 1
    wire().parts, wire().refuses = parts, refuses or {}
    facts = ServerFacts("openai", "a server")
    ask = Ask(1, (Message("user", "hi"),), GenerationSettings(temperature=0.5, seed=3))

    def emit(event: Any) -> None:
        events.append(event if isinstance(event, Step) else harmless(wire().keys.redacted(event)))

    asyncio.run(ServerTurn(wire(), ReachedServer(facts, "some-model", OpenAi(facts)), ask, emit).run())
    return events


@dataclass
class Truth:
    """What a stream holds."""

    text: str
    thought: str = ""
    error: str | None = None
    """In the sentence that says why there is no whole answer."""
    notice: str = ""
    """In a notice under the answer."""
    reason: str = "stop"


def choice(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": None, **fields}]}


def delta(**fields: Any) -> dict[str, Any]:
    return choice(delta=fields)


TEXT_SHAPES = (
    lambda text: delta(content=text),
    lambda text: delta(role="assistant", content=text, refusal=None, tool_calls=[]),
    lambda text: delta(content=[{"type": "text", "text": text}]),
    lambda text: delta(content=[{"type": "reference", "reference_ids": [1]}, {"type": "output_text", "text": text}]),
    lambda text: delta(content={"type": "text", "text": {"value": text, "annotations": []}}),
    lambda text: delta(content=[text]),
    lambda text: delta(content=None, refusal=text),
    lambda text: choice(text=text),
    lambda text: choice(delta=text),
    lambda text: {"data": delta(content=text)},
    lambda text: {"result": delta(content=text), "success": True},
    lambda text: {**delta(content=text), "error": None, "base_resp": {"status_code": 0, "status_msg": "success"}},
    lambda text: {**delta(content=int(text) if text == "42" else text), "id": int("9" * 3000)},
)
THOUGHT_SHAPES = (
    lambda text: delta(content=None, reasoning_content=text),
    lambda text: delta(reasoning_content=text, reasoning=text),
    lambda text: delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": text}], "signature": "ab"}]),
    lambda text: delta(content="", reasoning_details=[{"type": "reasoning.text", "text": text}]),
    lambda text: delta(content=text, thought=True),
    lambda text: delta(content=text, reasoning=True),
    lambda text: delta(content=text, extra_content={"google": {"thought": True}}),
    lambda text: delta(role="reasoning", content=text),
    lambda text: delta(channel="analysis", content=text),
)
ERRORS = (
    lambda words: {"error": words},
    lambda words: {"error": {"message": words, "code": 500}},
    lambda words: {"error": [words]},
    lambda words: {"error": True, "message": words},
    lambda words: {"errors": [{"message": words}]},
    lambda words: {"Error": {"Message": words}},
    lambda words: {"detail": words},
    lambda words: {"detail": [{"loc": ["body", "messages"], "msg": words}]},
    lambda words: {"message": words},
    lambda words: {"message": words, "code": 402},
    lambda words: {"exception": words},
    lambda words: {"errcode": 7, "errmsg": words},
    lambda words: {"choices": None, "base_resp": {"status_code": 1008, "status_msg": words}},
    lambda words: {"choices": [], "error": {"message": words}},
    lambda words: {"success": False, "reason": words},
    lambda words: {"status": "failed", "info": {"why": words}},
    lambda words: {"type": "error", "error": {"type": "overloaded", "message": words}},
    lambda words: {"whatever": {"said": words}},
    lambda words: choice(delta={}, finish_reason="error", error={"code": 502, "message": words}),
    lambda words: delta(error={"message": words}),
    lambda words: delta(content="", error=words),
    lambda words: choice(message={"error": {"message": words}}),
    lambda words: f"event: error\ndata: {json.dumps({'message': words})}",
    lambda words: f"event: error\ndata: {words}",
    lambda words: f"error: {json.dumps({'code': 400, 'message': words})}",
)
UNREAD = (
    lambda words: f"data: {words}",
    lambda words: f'data: {{"broken": "{words}',
    lambda words: words,
    lambda words: {"choices": [], "whatever": {"said": words}},
    lambda words: delta(speech=words),
    lambda words: {"type": "something.new", "said": words},
)
LIFE = (
    ": ping", ":", "data: ping", "data: keep-alive", "data:", "data: {}", "event: ping\ndata: {}", "retry: 3000",
    "id: 7", "1f5", {"choices": []}, {"type": "ping"}, {"status": "processing"},
    {"object": "chat.completion.chunk", "id": "x", "model": "m"},
    {"choices": [], "prompt_filter_results": [{"content_filter_results": {"hate": {"severity": "safe"}}}]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}, delta(role="assistant", content=""),
    {"choices": [{"index": 1, "delta": {"content": "OTHER"}}]}, ": OPENROUTER PROCESSING",
)  # fmt: skip
"""What says nothing."""
DONE = (
    "data: [DONE]", "data:[DONE]", "data: [done]", 'data: "[DONE]"', "[DONE]", "data: DONE", "\x00[DONE]",
    "done: [DONE]", "event: done\ndata: {}", "data: [DONE]\n\nbehind it",
    'data: [DONE]\n\ndata: {"choices": [{"index": 0, "delta": {"content": "behind it"}}]}',
)  # fmt: skip


def cut(draw: Any, text: str) -> list[str]:
    """In a few pieces, of which some end in the middle of a surrogate pair."""
    units = text.encode("utf-16-le")
    places = draw(st.lists(st.integers(1, max(len(units) // 2 - 1, 1)), max_size=5, unique=True))
    ends = [0, *sorted(place for place in places if place < len(units) // 2), len(units) // 2]
    return [units[2 * a : 2 * b].decode("utf-16-le", "surrogatepass") for a, b in pairwise(ends)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, Truth]:
    """A stream's bytes, and what it holds."""
    text, shape = draw(st.sampled_from(TEXTS)), draw(st.sampled_from(TEXT_SHAPES))
    thought = draw(st.sampled_from(("", "", *THOUGHTS)))
    how = draw(st.sampled_from(("field", "marks", "end"))) if thought else ""
    truth = Truth(text, thought)
    events: list[Any] = []
    if how == "field":
        events += map(draw(st.sampled_from(THOUGHT_SHAPES)), cut(draw, thought))
    elif how:
        opens = draw(st.sampled_from(list(PAIRS)[:8] if how == "marks" else ["<think>"]))
        closes = PAIRS[opens]
        if draw(st.booleans()) and "|" not in opens:
            opens, closes = opens.upper(), closes.upper()
        truth.text = text = text.lstrip()
        text = f"{opens if how == 'marks' else ''}{thought}{closes}\n\n{text}"
    shape = shape if text != "42" or shape is TEXT_SHAPES[-1] else TEXT_SHAPES[0]
    events += map(shape, [text] if text == "42" else cut(draw, text))
    fate = draw(st.sampled_from(("well", "well", "whole", "error", "unread", "ends", "unread alone")))
    words = f"{WORDS} for {KEY}\x1b[31m" if draw(st.booleans()) else WORDS
    finish = [choice(delta={}, finish_reason=draw(st.sampled_from(("stop", "STOP", "eos", "end_turn"))))]
    done = [draw(st.sampled_from(DONE))]
    ending = [*finish, *done] if fate == "whole" else draw(st.sampled_from((finish, done, [*finish, *done])))
    if fate == "whole" and len(truth.text) > 8 and how in ("", "field"):
        again = {"role": "assistant", "content": text}
        wholes = (
            choice(message=again),
            choice(delta={}, message=again, finish_reason="stop"),
            {"object": "chat.completion", "choices": [{"message": again, "finish_reason": "stop"}]},
        )
        events.append(draw(st.sampled_from(wholes)))
    elif fate == "error":
        place = draw(st.sampled_from((0, len(events))))
        events.insert(place, draw(st.sampled_from(ERRORS))(words))
        truth = Truth(truth.text * (place > 0), truth.thought * (place > 0), WORDS)
        ending = draw(st.sampled_from(([], ending)))
    elif fate == "unread":
        events.insert(draw(st.integers(0, len(events))), draw(st.sampled_from(UNREAD))(words))
        truth.notice = WORDS
    elif fate == "unread alone":
        events, truth = [draw(st.sampled_from(UNREAD))(words)], Truth("", "", WORDS)
    elif fate == "ends":
        ending, truth.error = [], "in the middle"
    for place in draw(st.lists(st.integers(0, len(events)), max_size=3)):
        events.insert(place, draw(st.sampled_from(LIFE)))
    end = draw(st.sampled_from(("\n", "\n", "\r\n", "\r")))
    ascii_only, before = draw(st.booleans()), draw(st.sampled_from(("", "", "\x00", "\ufeff", "\x1e ")))
    lines, looks = [], draw(st.sampled_from(("line", "line", "lines", "bare")))
    for event in [*events, *ending]:
        said = event
        if isinstance(event, dict) and looks == "bare":
            said = _json(event, ascii_only)
        elif isinstance(event, dict):
            told = _json(event, ascii_only, indent=1 if looks == "lines" else None).split("\n")
            said = "\n".join(f"{before}data: {line}" for line in told)
        lines.append(f"{said}\n\n".replace("\n", end))
    return "".join(lines).encode(), truth


def _json(event: Any, ascii_only: bool, indent: int | None = None) -> str:
    said = json.dumps(event, ensure_ascii=ascii_only, indent=indent)
    whole = said.encode("utf-8", "replace").decode() == said  # not half of a surrogate pair
    return said if whole else json.dumps(event, indent=indent)


def complaints(truth: Truth, events: Sequence[Any]) -> Iterator[str]:
    finished: TurnFinished = events[-1]
    errors = " ".join(f"{event.message} {event.hint}" for event in events if isinstance(event, EngineError))
    notices = " ".join(event.message for event in events if isinstance(event, Notice))
    told = "".join(token.text for event in events if isinstance(event, Step) for token in event.emitted)
    if (finished.text, finished.thought) != (truth.text, truth.thought):
        yield f"{finished.text!r} and {finished.thought!r}, not {truth.text!r} and {truth.thought!r}"
    if told != finished.thought + finished.text:
        yield f"the pieces are {told!r}"
    if finished.reason != ("stop" if truth.error is None else "error") or (truth.error or "") not in errors:
        yield f"{finished.reason}: {errors}"
    if (
        bool(errors) != (truth.error is not None)
        or truth.notice not in notices
        or (not truth.notice and "also" in notices)
    ):
        yield f"errors {errors!r}, notices {notices!r}"
    if not all(sign.isprintable() for sign in errors + notices) or KEY in repr(events):
        yield "a key, or what a terminal acts on"


PIECES = st.lists(st.integers(1, 60), min_size=1, max_size=4)


@settings(max_examples=1000 if IN_CI else 60, deadline=None)
@example((f"data: {_json(delta(content='x'), True)}\n\n{DONE[-1]}\n\n".encode(), Truth("x")), [500])
@given(streams(), PIECES)
def test_what_a_server_said_is_heard_once_and_whole(stream: tuple[bytes, Truth], sizes: list[int]) -> None:
    body, truth = stream
    assert list(complaints(truth, heard(body, sizes))) == [], body


@settings(max_examples=200 if IN_CI else 20, deadline=None)
@given(streams(), PIECES, st.lists(st.tuples(st.integers(0, 10**4), st.binary(max_size=3)), max_size=8))
def test_whatever_comes_an_answer_ends_and_its_pieces_are_what_it_is(
    stream: tuple[bytes, Truth], sizes: list[int], changes: list[tuple[int, bytes]]
) -> None:
    body = bytearray(stream[0] or b" ")
    for place, other in changes:
        body[place % len(body) : place % len(body) + len(other)] = other
    events = heard(bytes(body), sizes)
    told = [token for event in events if isinstance(event, Step) for token in event.emitted]
    assert sorted("".join(token.text for token in told)) == sorted(events[-1].thought + events[-1].text)
    for event in events:
        assert event_from_dict(json.loads(json.dumps(event_to_dict(event), allow_nan=False))) == event


FIELDS = ("stream_options", "max_tokens", "max_completion_tokens", "seed", "temperature", "top_p")
REFUSALS = (
    "{} is not supported", "Unsupported parameter: '{}'", "Extra inputs are not permitted: {}", "unknown field `{}`",
    "got an unexpected keyword argument '{}'", "Bad Request",
)  # fmt: skip


@settings(max_examples=60 if IN_CI else 10, deadline=None)
@given(st.sets(st.sampled_from(FIELDS), min_size=1), st.sampled_from(REFUSALS))
def test_what_a_server_refuses_is_left_out_and_named(fields: set[str], sentence: str) -> None:
    body = f"data: {json.dumps(delta(content='Hello there'))}\n\ndata: [DONE]\n\n".encode()
    events = heard(body, refuses={name: sentence.format(name) for name in fields})
    notices = " ".join(event.message for event in events if isinstance(event, Notice))
    assert (events[-1].text, events[-1].reason) == ("Hello there", "stop")
    assert all(name in notices for name in fields - {"max_completion_tokens"})
