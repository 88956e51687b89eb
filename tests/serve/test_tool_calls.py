"""Calls as each family writes them: read whole, cut anywhere, and left as text where they are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dflash_tui.serve.tool_calls import AnswerPart, CallReader
from engine.commands import CallSyntax, Tool, ToolCall

from ..pace import examples

SHAPES = {
    "text": {"type": "string"},
    "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    **{name: {"type": kind} for name, kind in {"count": "integer", "share": "number", "yes": "boolean"}.items()},
    **{name: {"type": kind} for name, kind in {"list": "array", "more": "object"}.items()},
}
TOOLS = tuple(Tool(name, "", {"properties": SHAPES}) for name in ("find", "get-it.2", "now"))
Write = Callable[[ToolCall], str]


def gemma(value: Any) -> str:
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{gemma(each)}" for key, each in value.items()) + "}"
    return f"[{','.join(map(gemma, value))}]" if isinstance(value, list) else json.dumps(value)


def tags(call: ToolCall) -> str:
    texts = {k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in call.arguments.items()}
    inside = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in texts.items())
    return f"<tool_call>\n<function={call.name}>\n{inside}</function>\n</tool_call>"


def in_json(arguments: str, call: ToolCall) -> str:
    return json.dumps({"name": call.name, arguments: call.arguments}, ensure_ascii=False)


def harmony(call: ToolCall) -> str:
    return f"<|channel|>commentary to=functions.{call.name} <|constrain|>json<|message|>{json.dumps(call.arguments)}"


WAYS: dict[str, tuple[CallSyntax, Write]] = {
    "Gemma 4": ("gemma", lambda call: f"<|tool_call>call:{call.name}{gemma(call.arguments)}<tool_call|>"),
    "Qwen3": ("qwen", lambda call: f"<tool_call>\n{in_json('arguments', call)}\n</tool_call>"),
    "Qwen3.5": ("qwen", tags),
    "gpt-oss": ("harmony", harmony),
    "gpt-oss, recipient first": (
        "harmony",
        lambda call: f" to=functions.{call.name}<|channel|>commentary json<|message|>{json.dumps(call.arguments)}",
    ),
    "Llama 3.1": ("llama", lambda call: in_json("parameters", call)),
    "Llama 3.1, tagged": ("llama", lambda call: f"<|python_tag|>{in_json('parameters', call)}"),
}
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12) | st.sampled_from(
    ["</tool_call>", "{", '"}', "<tool_call>", "a: b, c", "Ünï\n code", "<|python_tag|>", "to=functions."]
)
SAYINGS = st.text(st.characters(codec="utf-8", exclude_characters="{"), max_size=20)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "text": TEXTS, "count": st.integers(), "share": st.floats(allow_nan=False, allow_infinity=False),
    "yes": st.booleans(), "list": st.lists(st.integers() | TEXTS, max_size=3), "maybe": st.none(),
    "more": st.dictionaries(st.sampled_from(["a", "b_c"]), TEXTS | st.none() | st.floats(0, 1), max_size=2),
}  # fmt: skip
CALLS = st.builds(ToolCall, st.sampled_from([tool.name for tool in TOOLS]), st.fixed_dictionaries({}, optional=KINDS))


def read(syntax: CallSyntax, pieces: Sequence[str]) -> tuple[str, list[ToolCall]]:
    """The text and the calls."""
    reader = CallReader(syntax, TOOLS)
    parts: list[AnswerPart] = [part for piece in pieces for part in reader.push(piece)]
    parts += reader.rest()
    return "".join(p for p in parts if isinstance(p, str)), [p for p in parts if isinstance(p, ToolCall)]


def cut(text: str, places: list[int]) -> list[str]:
    marks = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[begin:end] for begin, end in pairwise(marks)]


CUTS = st.lists(st.integers(0, 10**6), max_size=8)


def plain(call: ToolCall) -> bool:
    """Whether tags can hold its texts: they have no way to say where one ends."""
    return not any(
        isinstance(v, str) and (v != v.strip("\n") or "<" in v or v == "null") for v in call.arguments.values()
    )


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=examples(28), deadline=None)
@given(calls=st.lists(CALLS, min_size=1, max_size=2), before=st.sampled_from(["", "Well.\n\n"]), places=CUTS)
def test_what_was_called_is_read_wherever_it_is_cut(
    way: str, calls: list[ToolCall], before: str, places: list[int]
) -> None:
    syntax, write = WAYS[way]
    quoted = [text for text in ('<|"|>', "<tool_call|>") if text in str(calls)]
    if quoted or (way == "Qwen3.5" and not all(map(plain, calls))):
        return
    before = "" if way == "Llama 3.1" else before
    said = before + ("\n" if syntax != "llama" else "; ").join(map(write, calls)).replace("; <|python_tag|>", ";")
    assert read(syntax, cut(said, places)) == read(syntax, list(said)) == (before.rstrip(), calls)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=examples(28), deadline=None)
@given(call=CALLS, after=SAYINGS, at=st.integers(0, 10**6), places=CUTS)
@example(ToolCall("now", {}), "", 20, [])
def test_what_is_no_call_stays_the_text_it_was(
    way: str, call: ToolCall, after: str, at: int, places: list[int]
) -> None:
    """A call whose end is missing, and something else behind it."""
    syntax, write = WAYS[way]
    written = write(call)
    said = written[: at % len(written)] + after
    text, calls = read(syntax, cut(said, places))
    assert (text, calls) == read(syntax, [said])
    if syntax != "harmony":  # whose headers are no text
        assert calls or text == said


@pytest.mark.parametrize("syntax", ["gemma", "qwen", "llama", "harmony"])
@settings(max_examples=examples(28), deadline=None)
@given(pieces=st.lists(SAYINGS, max_size=6))
def test_an_answer_without_calls_passes_as_it_is(syntax: CallSyntax, pieces: list[str]) -> None:
    assert read(syntax, pieces) == ("".join(pieces), [])


@pytest.mark.parametrize(
    ("syntax", "said"),
    [
        ("qwen", '<tool_call>\n{"name": "find"}\nand so on</tool_call> more'),
        ("qwen", '<tool_call>\n{"name": "find", "arguments": {"text": "\\ud800"}}\n</tool_call>'),
        ("qwen", '<tool_call>\n{"name": "find", "arguments": {"count": NaN}}\n</tool_call>'),
        ("qwen", '<tool_call>\n{"name": "find", "arguments": [1]}\n</tool_call>'),
        ("qwen", f'<tool_call>\n{{"name": "find", "arguments": {"[" * 100_000}}}\n</tool_call>'),
        ("qwen", "<tool_call>\n<function=find>\n<parameter=text>\nx\n</function>\n</tool_call>"),
        ("qwen", "<tool_call></tool_call>" * 3000),
        ("gemma", "<|tool_call>call:find{text:two words}<tool_call|>"),
        ("gemma", "<|tool_call>find<tool_call|>"),
        ("llama", '{"name": "unknown", "parameters": {}}'),
        ("llama", '{"city": "Oslo"} is JSON'),
        ("llama", 'As JSON: {"name": "find", "parameters": {}}'),
        ("harmony", '<|channel|>commentary to=functions.find<|message|>{"text": '),
    ],
)
def test_calls_that_are_none(syntax: CallSyntax, said: str) -> None:
    assert read(syntax, cut(said, [7, 19, 30])) == (said, [])
