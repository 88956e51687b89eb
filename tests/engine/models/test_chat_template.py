"""Gemma 4's fallback template against the published one of 2026-07-09: the same ids for every conversation."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path

import pytest

from engine.commands import Message
from engine.tokenizer import ChatTokenizer
from tests.engine.checkpoints import write_tokenizer

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
        ours, published = (each._render(talk, thinking, answering) for each in tokenizers)
        assert ours == published, (thinking, answering)
