"""Every way of asking is the same request, and gets the same answer: whole or streamed, text, calls, rounds, errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx2
import pytest

from dflash_tui.core.source import Capabilities
from dflash_tui.serve.paths import NOT_HAD
from engine.commands import Message, Tool, ToolCall
from engine.events import EngineError

from .conftest import HTTP, Json, Serve, Served, serving

QUESTION, ANSWER = "Write a page", "Well, it is late, and nobody reads."
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich"}}\n</tool_call>'
FUNCTION = {"name": "weather", "description": "Says it.", "parameters": SCHEMA}
OPENAI_TOOL = {"type": "function", "function": FUNCTION}
Said = tuple[str, list[tuple[str, Json]]]
"""The text, and calls with their arguments."""


@dataclass(frozen=True)
class Way:
    """How one dialect says what all do."""

    path: str
    body: Json
    tools: Json
    result: list[Json]
    """What comes behind the question: a call, and what it gave."""
    said: Callable[[Json], Said]
    """Reads a whole answer."""
    streamed: Callable[[list[Json]], Said]
    messages: str = "messages"
    error: Callable[[Json], str] = lambda body: str(body["error"]["message"])


def message_said(message: Json) -> Said:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return message["content"] or "", [(each["name"], arguments(each["arguments"])) for each in calls]


def arguments(given: str | Json) -> Json:
    return given if isinstance(given, dict) else json.loads(given)


def added(parts: Iterator[Said]) -> Said:
    texts, calls = zip(*parts, strict=True)
    return "".join(texts), [call for each in calls for call in each]


def deltas_said(chunks: list[Json]) -> Said:
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    return added(message_said({"content": "", **delta}) for delta in deltas)


def output_said(response: Json) -> Said:
    items = response["output"]
    texts = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
    calls = [item for item in items if item["type"] == "function_call"]
    return "".join(texts), [(each["name"], arguments(each["arguments"])) for each in calls]


def response_streamed(events: list[Json]) -> Said:
    """The last event tells all; what came before it must be the same."""
    text = "".join(each["delta"] for each in events if each["type"] == "response.output_text.delta")
    done = [each["item"] for each in events if each["type"] == "response.output_item.done"]
    assert [each["sequence_number"] for each in events] == list(range(len(events)))
    assert events[-1]["response"]["output"] == done
    said = output_said(events[-1]["response"])
    assert said[0] == text
    return said


def blocks_said(message: Json) -> Said:
    blocks = message["content"]
    calls = [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
    return "".join(block["text"] for block in blocks if block["type"] == "text"), calls


def blocks_streamed(events: list[Json]) -> Said:
    blocks: list[Json] = []
    for event in events:
        match event:
            case {"type": "content_block_start", "index": index, "content_block": block}:
                assert index == len(blocks)
                blocks.append(block)
            case {"type": "content_block_delta", "delta": {"text": text}}:
                blocks[event["index"]]["text"] += text
            case {"type": "content_block_delta", "delta": {"partial_json": text}}:
                blocks[event["index"]]["input"] = json.loads(text)
    opened, closed = ([each["type"] for each in events].count(f"content_block_{w}") for w in ("start", "stop"))
    assert opened == closed and events[-1]["type"] == "message_stop"
    return blocks_said({"content": blocks})


CALLED = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
WAYS = {
    "chat": Way(
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": QUESTION}]},
        {"tools": [OPENAI_TOOL], "tool_choice": "auto"},
        [{"role": "assistant", "content": None, "tool_calls": [CALLED]},
         {"role": "tool", "tool_call_id": "1", "content": "Rain."}],
        lambda body: message_said(body["choices"][0]["message"]),
        deltas_said,
    ),
    "responses": Way(
        "/v1/responses",
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]},
        {"tools": [{"type": "function", **FUNCTION, "strict": True}], "tool_choice": "auto"},
        [{"type": "function_call", "call_id": "1", "name": "weather", "arguments": '{"city": "Bern"}'},
         {"type": "function_call_output", "call_id": "1", "output": "Rain."}],
        output_said,
        response_streamed,
        "input",
    ),
    "messages": Way(
        "/v1/messages",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}], "max_tokens": 2000},
        {"tools": [{"name": "weather", "description": "Says it.", "input_schema": SCHEMA}],
         "tool_choice": {"type": "auto"}},
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "weather",
                                            "input": {"city": "Bern"}}]},
         {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "Rain."}]}],
        blocks_said,
        blocks_streamed,
    ),
    "Ollama": Way(
        "/api/chat",
        {"messages": [{"role": "user", "content": QUESTION}]},
        {"tools": [OPENAI_TOOL]},
        [{"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Bern"}}}]},
         {"role": "tool", "tool_name": "weather", "content": "Rain."}],
        lambda body: message_said(body["message"]),
        lambda lines: added(message_said(line["message"]) for line in lines),
        error=lambda body: str(body["error"]),
    ),
}  # fmt: skip


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


@pytest.fixture(scope="module")
def calling() -> Iterator[Served]:
    """One whose model calls a tool."""
    with serving(answer=f"I look.\n\n{CALL}", calls="qwen", round_seconds=0.0) as running:
        yield running


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """One that knows no tools."""
    with serving(answer=ANSWER, round_seconds=0.0) as running:
        yield running


def post(served: Served, path: str, **body: object) -> httpx2.Response:
    return HTTP.post(f"{served.url}{path}", json=body)


def ask(served: Served, way: Way, stream: bool, **more: object) -> list[Json]:
    """The objects that come back: one, or those of a stream."""
    answer = post(served, way.path, **{**way.body, "stream": stream, **more})
    assert answer.status_code == 200, answer.text
    if not stream:
        return [answer.json()]
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith(("data: ", "{"))]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def said(way: Way, told: list[Json], stream: bool) -> Said:
    return way.streamed(told) if stream else way.said(told[0])


@pytest.mark.parametrize("stream", [False, True])
def test_text_is_the_same_everywhere_and_rounds_come_to_who_asks(served: Served, way: Way, stream: bool) -> None:
    assert said(way, ask(served, way, stream), stream) == (ANSWER, [])
    assert served.engine.asked[-1].messages == (Message("user", QUESTION),)
    told = ask(served, way, stream, return_dflash_events=True)
    assert said(way, told, stream) == (ANSWER, [])
    events = [event for each in told for event in each.get("dflash", ())]
    assert events == served.told(served.engine.asked[-1].turn)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("speculation", [False, True])
def test_calls_are_told_and_what_they_gave_goes_back(
    calling: Served, way: Way, stream: bool, speculation: bool
) -> None:
    more = {**way.tools, way.messages: way.body[way.messages] + way.result, "speculation": speculation}
    told = ask(calling, way, stream, **more)
    assert said(way, told, stream) == ("I look.", [("weather", {"city": "Zürich"})])
    asked = calling.engine.asked[-1]
    assert asked.tools == (Tool("weather", "Says it.", SCHEMA),)
    question, called, result = asked.messages
    assert (question.content, called.calls) == (QUESTION, (ToolCall("weather", {"city": "Bern"}, called.calls[0].id),))
    assert result == Message("tool", "Rain.", name="weather", call_id=called.calls[0].id)
    reasons = ("finish_reason", "status", "stop_reason", "done_reason")
    found = [value for each in told for value in reasons_in(each, reasons)]
    assert {"tool_calls", "completed", "tool_use", "stop"} & set(found)


def reasons_in(data: object, names: tuple[str, ...]) -> Iterator[str]:
    if isinstance(data, dict):
        yield from (value for name, value in data.items() if name in names and isinstance(value, str))
    for each in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from reasons_in(each, names)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"model": "other"}, "There is no model"),
        ({"tool_choice": "required"}, "tool_choice can't be had"),
        ({"tool_choice": {"type": "tool", "name": "weather"}}, "tool_choice can't be had"),
        ({"n": 2}, "n can't be had"),
        ({"temperature": 9}, "between 0 and 2"),
        ({"messages": 1, "input": 1}, "must be a"),
    ],
)
def test_refusals_are_sentences_in_every_dialect(calling: Served, way: Way, more: Json, words: str) -> None:
    answer = post(calling, way.path, **{**way.body, **way.tools, **more})
    assert answer.status_code in (400, 404) and words in way.error(answer.json())


def test_an_engine_s_error_reaches_everybody(serve: Serve) -> None:
    error = EngineError("usage", "The conversation has 9 tokens, the context holds 8.", "Ask less.")
    with serve(turn_error=error) as served:
        for way in WAYS.values():
            for stream in (False, True):
                answer = post(served, way.path, **way.body, stream=stream)
                assert "the context holds 8. Ask less." in answer.text
                assert answer.status_code == 400 or stream


def test_a_prompt_is_counted_without_being_asked(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Anthropic's clients do before they ask."""
    asked = len(served.engine.asked)
    monkeypatch.setattr(served.engine, "capabilities", Capabilities(count=lambda ask: len(ask.messages[-1].content)))
    for path in ("/v1/messages/count_tokens", "//messages/count_tokens/"):
        assert post(served, path, **WAYS["messages"].body).json() == {"input_tokens": len(QUESTION)}
    monkeypatch.setattr(served.engine, "capabilities", Capabilities())
    refused = post(served, "/v1/messages/count_tokens", **WAYS["messages"].body)
    assert refused.status_code == 400 and refused.json()["type"] == "error"
    assert (
        "There is no model"
        in post(served, "/v1/messages/count_tokens", model="x", messages=[]).json()["error"]["message"]
    )
    assert len(served.engine.asked) == asked


@pytest.mark.parametrize("path", NOT_HAD)
def test_what_is_no_text_is_refused_by_name(served: Served, path: str) -> None:
    for each in (path, path.removeprefix("/v1")):
        answer = post(served, each, model="gemma4-tiny", input="x")
        error = answer.json()["error"]
        assert answer.status_code == 400
        assert f"{path} can't be had" in (error if path.startswith("/api/") else error["message"])


def test_what_ollama_s_clients_ask_besides(served: Served) -> None:
    for path in ("/api/tags", "/api/ps"):
        (model,) = HTTP.get(served.url + path).json()["models"]
        assert (model["model"], model["size"]) == ("demo/gemma4-tiny", 15_000_000)
    assert HTTP.get(f"{served.url}/api/version").json()["version"]
    about = post(served, "/api/show", model="Gemma4-Tiny:latest").json()
    assert about["capabilities"] == ["completion"] and about["model_info"]["dflash.context_length"] == 4096
    assert "There is no model" in post(served, "/api/show", model="x").json()["error"]
    body: Json = {"prompt": "Once", "stream": False, "options": {"num_predict": 5, "seed": 3}}
    assert post(served, "/api/generate", **body).json()["response"] == ANSWER
    assert post(served, "/api/generate", model="gemma4-tiny").json()["done_reason"] == "load"
    schema = post(served, "/api/chat", **WAYS["Ollama"].body, format=SCHEMA)
    assert schema.status_code == 400 and schema.json()["error"].startswith("format can't be had")
    asked = served.engine.asked[-1]
    assert (asked.settings.max_new_tokens, asked.settings.seed) == (5, 3) and asked.messages[-1].content == "Once"
    assert post(served, "/api/generate", **body, raw=True).json()["response"] == ANSWER
    assert served.engine.asked[-1].prompt == "Once"
