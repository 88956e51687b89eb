"""Conversations of Llama and Qwen3: templates of checkpoints that come without one, thoughts, and tokens for tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from dflash_tui.serve.tool_calls import CallReader
from engine.commands import Message, Tool, ToolCall
from engine.errors import UsageFailure
from engine.tokenization.tokenizer import AnswerStream, ChatTokenizer, stream_of

TALK = [
    Message("system", "Be brief."),
    Message("user", "Hi"),
    Message("assistant", "<think>\nhm\n</think>\n\nYes?"),
    Message("user", "Sort it"),
]
SPECIAL = ["<|begin_of_text|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|python_tag|>"]
PLAIN = ["<think>", "</think>", "<tool_call>", "</tool_call>"]


def tokenizer_of(folder: Path, family: str) -> ChatTokenizer:
    """One that spells in bytes, with the tokens of both families, as published ones mark them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={byte: index for index, byte in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, special=False) for token in PLAIN])
    tokenizer.save(str(folder / "tokenizer.json"))
    about = {"tokenizer_class": "TokenizersBackend", "bos_token": SPECIAL[0], "eos_token": "<|im_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    (folder / "config.json").write_text(json.dumps({"model_type": family}))
    return ChatTokenizer(folder)


def rendered(tokenizer: ChatTokenizer, talk: list[Message], thinking: bool) -> str:
    text = tokenizer._tokenizer.decode(list(tokenizer.prompt(talk, thinking).ids), skip_special_tokens=False)
    assert isinstance(text, str)
    return text


QWEN = (
    "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    "{}Yes?<|im_end|>\n<|im_start|>user\nSort it<|im_end|>\n<|im_start|>assistant\n"
)


@pytest.mark.parametrize(
    ("family", "thinking", "expected"),
    [
        ("qwen3", True, QWEN.format("")),
        ("qwen3", False, QWEN.format("") + "<think>\n\n</think>\n\n"),
        ("qwen3_5", True, QWEN.format("") + "<think>\n"),
        ("qwen3_5_moe", False, QWEN.format("") + "<think>\n\n</think>\n\n"),
        ("qwen3_moe", True, QWEN.format("<think>\nhm\n</think>\n\n")),
        (
            "llama",
            False,
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>"
            "\n\n<think>\nhm\n</think>\n\nYes?<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nSort it<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
    ],
)
def test_templates(family: str, thinking: bool, expected: str, tmp_path: Path) -> None:
    assert rendered(tokenizer_of(tmp_path, family), TALK, thinking) == expected


def test_an_answer_begins_in_the_thought_that_its_prompt_opens(tmp_path: Path) -> None:
    """Qwen3.5's template opens it. What a person's text opens is over when the answer begins."""
    tokenizer = tokenizer_of(tmp_path, "qwen3_5")
    asked = [Message("user", "What does <think> mean?")]
    for thinking, thought, answer in ((True, "hm\n", "Yes"), (False, "", "hm\nYes")):
        stream, found = stream_of(tokenizer, tokenizer.prompt(asked, thinking).ids), {"answer": "", "thought": ""}
        said = "hm\n</think>\n\nYes" if thinking else "hm\nYes"
        for token in tokenizer.raw_prompt(said).ids:
            piece, channel = stream.push(token)
            if channel != "control":
                found[channel] += piece
        assert found == {"thought": thought, "answer": answer}
    assert stream_of(tokenizer, tokenizer.raw_prompt("<think>\nis a word").ids).push(65)[1] == "answer"


def test_what_a_later_prompt_repeats(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(tmp_path, "qwen3")
    prompt = tokenizer.prompt(TALK[:2], thinking=False)
    later = tokenizer.prompt([*TALK[:2], Message("assistant", "Yes?"), TALK[3]], thinking=False)
    assert later.ids[: prompt.stable_length] == prompt.ids[: prompt.stable_length]
    assert len(prompt.ids) - prompt.stable_length == len(tokenizer.raw_prompt("<think>\n\n</think>\n\n").ids)


def channels(tokenizer: ChatTokenizer, text: str) -> dict[str, str]:
    stream, found = AnswerStream(tokenizer), {"answer": "", "thought": "", "control": ""}
    for token in tokenizer.raw_prompt(text).ids:
        piece, channel = stream.push(token)
        found[channel] += piece
    return found


def test_thoughts_are_apart_and_calls_of_tools_are_text(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(tmp_path, "qwen3")
    said = "<think>\nOne\n\ntwo.\n</think>\n\n\nThree\n\nfour<tool_call>\n{}\n</tool_call><|im_end|>"
    found = channels(tokenizer, said)
    assert found["thought"] == "One\n\ntwo.\n"
    assert found["answer"] == "Three\n\nfour<tool_call>\n{}\n</tool_call>" and found["control"] == ""


def test_a_call_of_llama_s_tools_is_text(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(tmp_path, "llama")
    found = channels(tokenizer, "Ü<|python_tag|>sum([1])<think>\n<|eot_id|>")
    assert found == {"answer": "Ü<|python_tag|>sum([1])<think>\n", "thought": "", "control": ""}


CALL = ToolCall("weather", {"city": "Zürich", "days": [1, 2]}, "1")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "description": "Where."},
                                           "days": {"type": "array", "items": {"type": "integer"}}}}  # fmt: skip
TOOLS = (Tool("weather", "Says it.", SCHEMA), Tool("now", "The time."))


@pytest.mark.parametrize(
    "family", ["qwen3", "qwen3_5", "qwen3_5_moe", "qwen3_moe", "qwen3_next", "llama", "gpt_oss", "gemma4_text"]
)
@pytest.mark.parametrize("system", [True, False])
def test_a_call_is_read_as_the_family_s_template_writes_it(family: str, system: bool, tmp_path: Path) -> None:
    """The template declares the tools, writes the call and what came back; our reader finds the call in those words."""
    tokenizer = tokenizer_of(tmp_path, family)
    assert tokenizer.calls is not None
    result = Message("tool", "Rain.", name="weather", call_id="1")
    talk = [*TALK[:1][: int(system)], TALK[1], Message("assistant", "", (CALL,)), result]
    written = tokenizer.written(talk, True, True, TOOLS)
    declared, _, called = written.rpartition("Hi")
    assert all(tool.name in declared for tool in TOOLS) and ("Be brief." in declared) == system
    assert "Rain." in called and called.index("Zürich") < called.index("Rain.")
    begin = called.index('{"name"') if tokenizer.calls == "llama" else 0
    reader = CallReader(tokenizer.calls, TOOLS)
    said = called[begin:].partition("<|eot_id|>")[0]
    assert [part for part in [*reader.push(said), *reader.rest()] if isinstance(part, ToolCall)] == [
        ToolCall(CALL.name, CALL.arguments)
    ]
    plain = [tokenizer.prompt(talk[: 1 + system], True).ids, tokenizer.prompt(TALK[:2][not system :], True, ()).ids]
    assert plain[0] == plain[1]


def test_a_template_that_knows_no_tools_has_calls_and_results_as_words(tmp_path: Path) -> None:
    tokenizer_of(tmp_path, "llama")
    (tmp_path / "chat_template.jinja").write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    tokenizer = ChatTokenizer(tmp_path)
    asked = Message("user", "Hi")
    with pytest.raises(UsageFailure, match="knows no tools"):
        tokenizer.prompt([asked], False, TOOLS)
    talk = [asked, Message("assistant", "Well.", (CALL,)), Message("tool", "Rain.", name="weather", call_id="1")]
    words = 'user: Hi\nassistant: Well.\nweather({"city": "Zürich", "days": [1, 2]})\nuser: Rain.\n'
    assert tokenizer.calls is None and rendered(tokenizer, talk, False) == words
