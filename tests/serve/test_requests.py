"""What a request may ask for: read as meant, or refused in a sentence that names the parameter."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.serve.failures import ApiFailure
from dflash_tui.serve.requests import (
    LEAST_TOP_P,
    MAX_TOP_K,
    CompletionRequest,
    Offer,
    RequestKind,
    parse,
    parse_json,
)
from engine.commands import GenerationSettings, Message

HELLO = [{"role": "user", "content": "hello"}]
OFFER = Offer("google/gemma", 4096, GenerationSettings(temperature=0.5))


def read(kind: RequestKind = "chat", **body: Any) -> CompletionRequest:
    given_too = {"messages": HELLO} if kind == "chat" else {"prompt": "hello"}
    return parse(kind, given_too | body, OFFER)


def refused(kind: RequestKind = "chat", **body: Any) -> ApiFailure:
    with pytest.raises(ApiFailure) as caught:
        read(kind, **body)
    return caught.value


def test_settings_are_read_and_the_server_has_defaults() -> None:
    assert read(seed=3).settings == GenerationSettings(temperature=0.5, seed=3, max_new_tokens=4096)
    asked = read(temperature=0, top_p=0.5, top_k=-1, seed=3, max_tokens=9, block_size=8, speculation=False)
    assert asked.settings == GenerationSettings(8, 0, 0.5, 0, 3, 9, speculation=False)
    assert read(max_tokens=9, max_completion_tokens=7).settings.max_new_tokens == 7
    assert read(max_tokens=10**9).settings.max_new_tokens == read().settings.max_new_tokens == 4096
    assert read(chat_template_kwargs={"enable_thinking": True}).settings.thinking
    assert read(temperature=None, stop=None, tools=None, n=None).settings.temperature == 0.5


def test_without_a_seed_every_warm_answer_is_another_one() -> None:
    assert read().settings.seed != read().settings.seed
    assert read(seed=7).settings.seed == read(seed=7).settings.seed == 7
    assert read(temperature=0).settings.seed == 0


@pytest.mark.parametrize(
    ("body", "setting", "value"),
    [
        ({"seed": -7}, "seed", 2**63 - 7),
        ({"seed": 2**64 + 5}, "seed", 5),
        ({"seed": "12"}, "seed", 12),
        ({"seed": 12.0}, "seed", 12),
        ({"temperature": "0.7"}, "temperature", 0.7),
        ({"max_tokens": "9"}, "max_new_tokens", 9),
        ({"max_tokens": -1}, "max_new_tokens", 4096),
        ({"max_tokens": 9.0}, "max_new_tokens", 9),
        ({"n_predict": 9}, "max_new_tokens", 9),
        ({"n_predict": -1}, "max_new_tokens", 4096),
        ({"top_k": -5}, "top_k", 0),
        ({"top_k": 2**40}, "top_k", MAX_TOP_K),
        ({"top_p": 0}, "top_p", LEAST_TOP_P),
        ({"speculation": "false"}, "speculation", False),
        ({"chat_template_kwargs": {"enable_thinking": 1, "other": 3}}, "thinking", True),
    ],
)
def test_values_that_openai_vllm_or_llama_cpp_take(body: Any, setting: str, value: Any) -> None:
    assert getattr(read(**body).settings, setting) == value


def test_what_nobody_knows_is_named_and_changes_nothing() -> None:
    strange = read(seed=1, tempature=1, top_a=0.2, extra_body={"a": 1})
    assert strange.unknown == ("tempature", "top_a", "extra_body")
    assert replace(strange, unknown=()) == read(seed=1)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None}, ""),
        ({}, ""),
        ({"content": []}, ""),
        ({"content": ["a", {"text": "b"}]}, "a\nb"),
        ({"content": None, "refusal": "No."}, "No."),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, "No."),
    ],
)
def test_contents_that_are_nothing_or_bare(message: Any, text: str) -> None:
    asked = [*HELLO, {"role": "assistant", **message}, {"role": "user", **message}]
    assert [each.content for each in read(messages=asked).messages] == ["hello", text, text]


def test_contents_are_text_in_one_piece_or_in_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [{"role": "developer", "content": "s"}, {"role": "assistant", "content": "x", "tool_calls": []},
                {"role": "user", "content": parts, "name": "n"}]  # fmt: skip
    assert read(messages=messages).messages == (
        Message("system", "s"),
        Message("assistant", "x"),
        Message("user", "a\nb"),
    )
    assert read("text", prompt=["one"]).prompt == "one"
    assert read("text", prompt=[3, 4]).prompt == read("text", prompt=[[3, 4]]).prompt == (3, 4)


NAMES_OF_IT = ("google/gemma", "gemma", "default", "Gemma", "openai/google/gemma", "openai/gemma", "gemma:latest")


@pytest.mark.parametrize("name", NAMES_OF_IT)
def test_names_of_the_model(name: str) -> None:
    assert read(model=name, seed=1) == read(seed=1)


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({"temperature": 3}, "temperature", "between 0 and 2"),
        ({"temperature": True}, "temperature", "a number"),
        ({"temperature": "hot"}, "temperature", "a number"),
        ({"temperature": "nan"}, "temperature", "a number"),
        ({"top_p": -0.1}, "top_p", "above 0"),
        ({"seed": 1.5}, "seed", "a whole number"),
        ({"max_tokens": 0}, "max_tokens", "at least 1"),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens", "a whole number"),
        ({"block_size": 99}, "block_size", "between 2 and 16"),
        ({"stream": "perhaps"}, "stream", "true or false"),
        ({"stream_options": True}, "stream_options", "an object"),
        ({"n": 2}, "n", "one answer"),
        ({"tools": [{"type": "function"}]}, "tools", "template knows no tools"),
        ({"tool_choice": "required"}, "tool_choice", "auto, or none"),
        ({"response_format": {"type": "json_object"}}, "response_format", "free text"),
        ({"presence_penalty": 0.5}, "presence_penalty", "temperature, top_p and top_k"),
        ({"top_logprobs": 2}, "top_logprobs", "emitted token alone"),
        ({"stop": ["a"] * 257}, "stop", "at most 256"),
        ({"stop_token_ids": ["a"]}, "stop_token_ids", "token ids"),
        ({"model": "gpt-9"}, "model", "this server has 'google/gemma'"),
        ({"messages": []}, "messages", "at least one message"),
        ({"continue_final_message": True}, "continue_final_message", "begins answers anew"),
        ({"guided_json": {"type": "object"}}, "guided_json", "free text"),
        ({"mirostat": 2}, "mirostat", "temperature, top_p and top_k"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0]", "not 'robot'"),
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, "messages[0].content[0]", "reads text alone"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}, *HELLO]}, "messages[0].tool_calls[0]", "a call"),
        ({"chat_template_kwargs": {"enable_thinking": 2}}, "enable_thinking", "true or false"),
    ],
)  # fmt: skip
def test_what_a_chat_is_refused(body: Any, param: str, words: str) -> None:
    failure = refused(**body)
    assert failure.status == (404 if param == "model" else 400)
    assert failure.body()["error"]["param"] == param and words in str(failure)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"prompt": ""}, "not empty"),
        ({"prompt": ["a", "b"]}, "several prompts"),
        ({"prompt": [1, True]}, "token ids"),
        ({"prompt": {}}, "a text"),
        ({"logprobs": 2}, "emitted token alone"),
        ({"echo": True}, "returns no prompts"),
    ],
)
def test_what_a_completion_is_refused(body: Any, words: str) -> None:
    assert words in str(refused("text", **body))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"a": NaN}', b"\xff", b'"\\ud800"', b'{"a": "\\ud800"}', b"[" * 100_000, b"9" * 5000]
)
def test_bodies_that_are_no_objects(body: bytes) -> None:
    with pytest.raises(ApiFailure) as caught:
        parse_json(body)
    assert caught.value.status == 400 and str(caught.value).startswith("The body ")


NAMES = st.sampled_from(
    ["messages", "prompt", "stop", "n", "seed", "temperature", "stream_options", "logprobs", "model"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "content", "type"]), inner),
    max_leaves=6,
)


@given(st.sampled_from(["chat", "text"]), st.dictionaries(NAMES, VALUES))
def test_anything_else_is_refused_too_and_never_breaks(kind: RequestKind, body: dict[str, Any]) -> None:
    try:
        parse(kind, parse_json(json.dumps(body).encode()), OFFER)
    except ApiFailure as failure:
        assert failure.status in (400, 404) and str(failure).endswith(".")
