"""The tokenizer as it ships: ids where engines expect them, lossless text, the template that training renders."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.lab.demo.model.files import PAIR
from engine.lab.demo.model.tokenizer import (
    FIRST_TEXT_ID,
    SPECIAL_TOKENS,
    WordEncoder,
    load_tokenizer,
    save_tokenizer,
    train_tokenizer,
)
from engine.lab.demo.texts.conversation import TextTurn, TrainingText, encode, encode_prompt, prompt_text

TEXTS = ["def add(a, b):\n    return a + b\n", "<p>Hello there, user model system thought</p>", "47 + 38 = 85"] * 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    save_tokenizer(train_tokenizer(TEXTS, 600), folder, 2048)
    return folder


@pytest.fixture(params=["trained", "shipped"])
def tokenizer_folder(request: pytest.FixtureRequest, folder: Path) -> Path:
    return folder if request.param == "trained" else PAIR / "target"


def test_special_ids_are_the_real_ones(tokenizer_folder: Path) -> None:
    tokenizer = load_tokenizer(tokenizer_folder)
    for id, token in SPECIAL_TOKENS.items():
        assert tokenizer.token_to_id(token) == id
        assert tokenizer.encode(f"a{token}b", add_special_tokens=False).ids.count(id) == 1
    assert tokenizer.token_to_id("\n") == FIRST_TEXT_ID == 107


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    if x:\n        return  x\n",
        "  two  spaces ",
        "1234 is 4 tokens",
        "naïve – ☃ 漢字 🙂",
        "a\n\n\nb",
        "\tx",
        ".<|turn>user\n    a <turn|>\n<b<|channel>",
    ],
)
def test_text_survives(tokenizer_folder: Path, text: str) -> None:
    tokenizer = load_tokenizer(tokenizer_folder)
    assert WordEncoder(tokenizer)(text) == tokenizer.encode(text, add_special_tokens=False).ids
    if "<|" in text:
        return  # special tokens leave no text
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) == text


def test_digits_are_single_and_indentation_is_one_token(tokenizer_folder: Path) -> None:
    tokenizer = load_tokenizer(tokenizer_folder)
    assert tokenizer.encode("2026", add_special_tokens=False).tokens == ["2", "0", "2", "6"]
    assert len(tokenizer.encode("\n    return", add_special_tokens=False).tokens) <= 3


CONVERSATIONS = {
    "plain": TrainingText((TextTurn("Hello there", "Hi."),)),
    "system": TrainingText((TextTurn("Hello", "Hi."),), system="Be brief."),
    "thinking": TrainingText((TextTurn("47 + 38?", "85."),), thought="I add tens and ones."),
    "thinking and system": TrainingText((TextTurn("47 + 38?", "85."),), system="Be brief.", thought="I add."),
    "two turns": TrainingText((TextTurn("a ", "b"), TextTurn("def f(x):\n    return x", "```python\nx\n```"))),
}


@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=list(CONVERSATIONS))
def test_training_rows_are_what_the_template_renders(tokenizer_folder: Path, conversation: TrainingText) -> None:
    transformers = pytest.importorskip("transformers")
    reader = transformers.AutoTokenizer.from_pretrained(tokenizer_folder)
    messages = [{"role": "system", "content": conversation.system}] if conversation.system else []
    for turn in conversation.turns:
        messages += [{"role": "user", "content": turn.prompt}, {"role": "assistant", "content": turn.response}]
    rendered = reader.apply_chat_template(
        messages[:-1], tokenize=False, add_generation_prompt=True, enable_thinking=conversation.thought is not None
    )
    assert rendered == prompt_text(conversation)
    tokenizer = load_tokenizer(tokenizer_folder)
    prompt = encode_prompt(tokenizer, conversation)
    assert reader(rendered, add_special_tokens=False).input_ids == prompt
    encoded = encode(WordEncoder(tokenizer), conversation)
    assert encoded.ids[: len(prompt)] == prompt
    assert all(weight == 1 for weight in encoded.weights[len(prompt) :]) and encoded.ids[-1] == 106
