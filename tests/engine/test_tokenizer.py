"""Prompts, the thinking channel, and text that streams token by token without losing or inventing a byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.commands import Message
from engine.errors import Option, UsageFailure, WeightsFailure
from engine.tokenization.tokenizer import AnswerStream, ChatTokenizer
from support.checkpoints import VOCAB_SIZE, write_tokenizer
from tests.pace import examples

BOS, MASK, THINK, OPEN, CLOSE, TURN, TURN_END, NEWLINE = 2, 4, 98, 100, 101, 105, 106, 107
FIRST_BYTE_ID = VOCAB_SIZE - 256


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ChatTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return ChatTokenizer(folder)


def encode(tokenizer: ChatTokenizer, text: str) -> list[int]:
    ids: list[int] = tokenizer._tokenizer.encode(text, add_special_tokens=False)
    return ids


def stream(tokenizer: ChatTokenizer, ids: list[int]) -> dict[str, str]:
    """What each channel reads when ids arrive one by one."""
    answer_stream = AnswerStream(tokenizer)
    channels = {"answer": "", "thought": "", "control": ""}
    for index, token in enumerate(ids):
        text, channel = answer_stream.push(token, last=index == len(ids) - 1)
        channels[channel] += text
    return channels


# --- prompts


@pytest.mark.parametrize("thinking", [False, True])
def test_stable_length_is_what_every_later_prompt_repeats(thinking: bool, tokenizer: ChatTokenizer) -> None:
    messages = [Message("user", "Hi!")]
    for answer in ("Hello.", "x", "<html>", "日本"):
        prompt = tokenizer.prompt(messages, thinking)
        messages += [Message("assistant", answer), Message("user", "And then?")]
        later = tokenizer.prompt(messages, thinking)
        assert later.ids[: prompt.stable_length] == prompt.ids[: prompt.stable_length]
        assert prompt.ids[: prompt.stable_length][-3:] == tuple(encode(tokenizer, "<|turn>model\n"))[-3:]
        empty_thought = [] if thinking else encode(tokenizer, "<|channel>thought\n<channel|>")
        assert prompt.stable_length == len(prompt.ids) - len(empty_thought)


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(WeightsFailure) as caught:
        ChatTokenizer(tmp_path)
    assert caught.value.hint


def test_a_context_without_room_is_refused_with_what_would_help(tokenizer: ChatTokenizer) -> None:
    tokenizer.require_room(200, 200)
    with pytest.raises(UsageFailure, match="has no room for a question") as caught:
        tokenizer.require_room(3, 4096)
    assert caught.value.advice == (Option("max_context", 2048),)
    with pytest.raises(UsageFailure) as caught:
        tokenizer.require_room(3, 3)
    assert "The model takes no more" in caught.value.hint


# --- the thinking channel


def test_thought_then_answer(tokenizer: ChatTokenizer) -> None:
    ids = encode(tokenizer, "<|channel>thought\nLet me see.\nYes.<channel|>It is **4**.<turn|>")
    assert stream(tokenizer, ids) == {"thought": "Let me see.\nYes.", "answer": "It is **4**.", "control": ""}


def test_the_channels_name_may_take_many_tokens(tokenizer: ChatTokenizer) -> None:
    spelled = [FIRST_BYTE_ID + byte for byte in b"analysis"]
    ids = [OPEN, *spelled, NEWLINE, *encode(tokenizer, "Hm."), CLOSE, *encode(tokenizer, "So.")]
    assert stream(tokenizer, ids) == {"thought": "Hm.", "answer": "So.", "control": ""}


def test_an_empty_thought_and_two_thoughts(tokenizer: ChatTokenizer) -> None:
    ids = encode(tokenizer, "<|channel>thought\n<channel|>A<|channel>thought\nB<channel|>C")
    assert stream(tokenizer, ids) == {"thought": "B", "answer": "AC", "control": ""}


def test_a_line_break_in_a_thought_stays(tokenizer: ChatTokenizer) -> None:
    ids = [OPEN, *encode(tokenizer, "thought"), NEWLINE, NEWLINE, *encode(tokenizer, "x"), CLOSE]
    assert stream(tokenizer, ids)["thought"] == "\nx"


# --- text


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_any_text_arrives_whole(text: str, tokenizer: ChatTokenizer) -> None:
    ids = [t for t in encode(tokenizer, text) if t not in tokenizer.special_ids | tokenizer.shown_ids]
    assert stream(tokenizer, ids)["answer"] == tokenizer.decode(ids)


ANY_TOKEN = st.integers(0, VOCAB_SIZE - 1)
A_BYTE = st.integers(FIRST_BYTE_ID, VOCAB_SIZE - 1)
ORDINARY = st.integers(0, FIRST_BYTE_ID - 1).map(lambda token: [token])
SPELLED = st.characters(exclude_categories=["Cs"]).map(lambda c: [FIRST_BYTE_ID + byte for byte in c.encode()])


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(ORDINARY | SPELLED, max_size=30))
def test_tokens_arrive_as_their_decoding(parts: list[list[int]], tokenizer: ChatTokenizer) -> None:
    """Ordinary tokens, and characters spelled in bytes: the pieces joined are the decoded whole."""
    hidden = tokenizer.special_ids | tokenizer.shown_ids  # which decoding leaves out
    ids = [token for part in parts for token in part if token not in hidden]
    assert stream(tokenizer, ids) == {"answer": tokenizer.decode(ids), "thought": "", "control": ""}


def is_subsequence(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(character in rest for character in part)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(ANY_TOKEN | A_BYTE, max_size=40))
def test_malformed_bytes_cost_nothing_else(ids: list[int], tokenizer: ChatTokenizer) -> None:
    """The tokenizer blanks a whole run of bytes when any of them is malformed, also those before it. Text that
    streams can't take back what it has shown, so it keeps at least what the decoded whole keeps, in order."""
    ids = [token for token in ids if token not in tokenizer.special_ids]
    channels = stream(tokenizer, ids)
    assert channels["thought"] == channels["control"] == ""
    assert is_subsequence(tokenizer.decode(ids).replace("\N{REPLACEMENT CHARACTER}", ""), channels["answer"])
    assert len(channels["answer"]) <= sum(len(tokenizer.piece(token)) for token in ids)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(ANY_TOKEN | st.sampled_from([OPEN, CLOSE, NEWLINE, TURN_END, MASK, TURN]), max_size=40))
def test_special_tokens_never_leak(ids: list[int], tokenizer: ChatTokenizer) -> None:
    channels = stream(tokenizer, ids)
    assert channels["control"] == ""
    for special in tokenizer.special_ids:
        assert tokenizer.piece(special) not in channels["answer"] + channels["thought"]


def test_a_character_appears_when_its_last_byte_does(tokenizer: ChatTokenizer) -> None:
    answer_stream = AnswerStream(tokenizer)
    pieces = [answer_stream.push(FIRST_BYTE_ID + byte)[0] for byte in "é🙂".encode()]
    assert pieces == ["", "é", "", "", "", "🙂"]


def test_half_a_character_at_the_end_is_shown(tokenizer: ChatTokenizer) -> None:
    answer_stream, half = AnswerStream(tokenizer), [FIRST_BYTE_ID + 0xE2, FIRST_BYTE_ID + 0x82]
    assert answer_stream.push(half[0]) == ("", "answer")
    assert answer_stream.push(half[1], last=True) == (tokenizer.decode(half), "answer")
    assert tokenizer.decode(half) != ""


def test_half_a_character_before_a_special_token_is_shown(tokenizer: ChatTokenizer) -> None:
    answer_stream = AnswerStream(tokenizer)
    assert answer_stream.push(FIRST_BYTE_ID + 0xE2) == ("", "answer")
    text, channel = answer_stream.push(TURN_END)
    assert channel == "answer" and set(text) == {"\N{REPLACEMENT CHARACTER}"}


def test_the_mask_token_does_not_swallow_text(tokenizer: ChatTokenizer) -> None:
    ids = [*encode(tokenizer, "be"), MASK, *encode(tokenizer, "fore")]
    assert stream(tokenizer, ids)["answer"] == "before"


def test_bundled_tokenizer_round_trips(bundled_pair: Path) -> None:
    bundled = ChatTokenizer(bundled_pair / "target")
    for text in ("def f(x):\n    return x**2\n", "<!DOCTYPE html>\n<canvas id='c'></canvas>", "naïve 日本語 🙂\t."):
        ids = encode(bundled, text)
        assert stream(bundled, ids)["answer"] == text == bundled.decode(ids)
