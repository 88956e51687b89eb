"""Gemma 4's fallback template against the published one of 2026-07-09: the same ids for every conversation."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path

import pytest

from engine.commands import Message, Tool, ToolCall
from engine.tokenization.tokenizer import ChatTokenizer
from support.checkpoints import write_tokenizer

PUBLISHED = Path(__file__).parents[1] / "configs" / "gemma-4-chat-template-2026-07-09.jinja"
THOUGHT = "<|channel>thought\nFirst this,\nthen that.\n<channel|>"
USER, ASSISTANT, SYSTEM = "user", "assistant", "system"

CONVERSATIONS = {
    "a question": [(USER, "Hi!")],
    "blanks around": [(USER, "  Hi!\n\n")],
    "two turns": [(USER, "Hi!"), (ASSISTANT, "Hello.\n"), (USER, "And?")],
    "a thought": [(USER, "Hi!"), (ASSISTANT, f"{THOUGHT}Hello."), (USER, "And?")],
    "thoughts within": [(USER, "Hi!"), (ASSISTANT, f"{THOUGHT}One {THOUGHT} two"), (USER, "And?"), (ASSISTANT, "3")],
    "an empty answer": [(USER, "Hi!"), (ASSISTANT, ""), (USER, "And?")],
    "nothing but a thought": [(USER, "Hi!"), (ASSISTANT, THOUGHT), (USER, "And?")],
    "an unfinished thought": [(USER, "Hi!"), (ASSISTANT, "Well <|channel>thought\nhm"), (USER, "And?")],
    "answers in a row": [(USER, "Hi!"), (ASSISTANT, "One."), (ASSISTANT, f"{THOUGHT} Two."), (USER, "And?")],
    "questions in a row": [(USER, "Hi!"), (USER, "Anybody?")],
    "a model": [(USER, "Hi!"), ("model", "One."), (USER, "And?")],
    "an assistant and a model": [(USER, "Hi!"), (ASSISTANT, "One."), ("model", "Two."), (USER, "And?")],
    "an answer first": [(ASSISTANT, "Welcome."), (USER, "Hi!")],
    "a system text later": [(USER, "Hi!"), (SYSTEM, "Be brief."), (USER, "And?")],
}
CITY = ToolCall("weather", {"city": "Zürich", "days": 2, "more": {"b": [1.5, True], "a": None}}, "1")
NOW = ToolCall("now", {}, "2")
CALLED = {
    "a call": [Message(ASSISTANT, "", (CITY,)), Message("tool", "Rain.", name="weather", call_id="1")],
    "two calls": [
        Message(ASSISTANT, "I look.", (CITY, NOW)),
        Message("tool", "Rain.", name="weather", call_id="1"),
        Message("tool", "12:00", name="now", call_id="2"),
    ],
    "a call and words": [
        Message(ASSISTANT, "", (NOW,)), Message("tool", "12:00", name="now", call_id="2"), Message(ASSISTANT, "Noon."),
        Message(USER, "And?"),
    ],
    "calls in a row": [
        Message(ASSISTANT, "", (NOW,)), Message("tool", "12:00", name="now", call_id="2"),
        Message(ASSISTANT, "", (CITY,)), Message("tool", "Rain.", name="weather", call_id="1"),
    ],
    "a call left alone": [Message(ASSISTANT, "", (NOW,)), Message(USER, "And?")],
    "a result and a question": [
        Message(ASSISTANT, "", (NOW,)), Message("tool", "12:00", name="now", call_id="2"), Message(USER, "And?"),
    ],
}  # fmt: skip
SHAPES = {
    "city": {"type": "string", "description": "Where.", "enum": ["Bern", "Zürich"]},
    "days": {"type": "integer", "nullable": True},
    "more": {
        "type": "object", "required": ["b"], "properties": {
            "b": {"type": "array", "description": "Many.", "items": {"type": "string", "enum": ["x"]}},
            "c": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "number"}},
                                             "required": ["d"]}},
        },
    },
    "free": {"type": "object", "x": {"type": "string"}},
}  # fmt: skip
TOOLS = (
    Tool("weather", "Says the weather.", {"type": "object", "properties": SHAPES, "required": ["city", "more"]}),
    Tool("now", "Says the time."),
)
SYSTEM_TEXTS = {
    "none": [],
    "some": [(SYSTEM, " Be brief.\n")],
    "empty": [(SYSTEM, "")],
    "developer": [("developer", "Be brief.")],
}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> tuple[ChatTokenizer, ChatTokenizer]:
    """Without a template, which takes ours, and with the published one."""
    ours, published = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("published")
    for folder in (ours, published):
        write_tokenizer(folder)
    (ours / "chat_template.jinja").unlink()
    shutil.copy(PUBLISHED, published / "chat_template.jinja")
    return ChatTokenizer(ours), ChatTokenizer(published)


@pytest.mark.parametrize(("name", "system"), list(product(CONVERSATIONS, SYSTEM_TEXTS)))
def test_same_ids_as_the_published_template(
    name: str, system: str, tokenizers: tuple[ChatTokenizer, ChatTokenizer]
) -> None:
    talk = [Message(*each) for each in SYSTEM_TEXTS[system] + CONVERSATIONS[name]]  # type: ignore[arg-type]
    for thinking, answering in product((False, True), repeat=2):
        ours, published = (each.render(talk, thinking, answering) for each in tokenizers)
        assert ours == published, (thinking, answering)


@pytest.mark.parametrize(("name", "system"), list(product(CALLED, SYSTEM_TEXTS)))
def test_tools_are_declared_called_and_answered_as_published(
    name: str, system: str, tokenizers: tuple[ChatTokenizer, ChatTokenizer]
) -> None:
    talk = [*(Message(*each) for each in SYSTEM_TEXTS[system]), Message(USER, "Hi!"), *CALLED[name]]  # type: ignore[arg-type]
    assert [each.calls for each in tokenizers] == ["gemma", "gemma"]
    for thinking, answering in product((False, True), repeat=2):
        ours, published = (each.written(talk, thinking, answering, TOOLS) for each in tokenizers)
        assert ours == published, (thinking, answering)
