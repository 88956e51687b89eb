"""Control tokens in people's words are text: a question can neither end itself nor begin another."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.commands import Message, Tool, ToolCall
from engine.errors import UsageFailure, WeightsFailure
from engine.tokenization.control_marks import ControlMarks, encode_broken
from engine.tokenization.tokenizer import ChatTokenizer

PAIR = Path(__file__).parents[2] / "engine" / "demo" / "pair" / "target"
TOKENIZER = ChatTokenizer(PAIR)
CONTROL = TOKENIZER.special_ids - {-1}
MARKS = sorted(filter(None, map(TOKENIZER.piece, CONTROL)))
PIECES = st.one_of(
    st.sampled_from(MARKS), st.text(max_size=4), st.sampled_from(["\n", "user", "<", "|", ">", "\ufdd0"])
)
WORDS = st.lists(PIECES, max_size=8).map("".join)


def marks_in(ids: tuple[int, ...]) -> list[int]:
    return [token for token in ids if token in CONTROL]


@given(WORDS, WORDS, WORDS)
def test_a_conversation_has_the_marks_of_its_template_alone(system: str, question: str, answer: str) -> None:
    roles = ("system", "user", "assistant", "user")
    said = [Message(role, words) for role, words in zip(roles, (system, question, answer, question), strict=True)]
    plain = [Message(message.role, "x" if message.content.strip() else "") for message in said]
    ids = TOKENIZER.prompt(said, thinking=False).ids
    assert marks_in(ids) == marks_in(TOKENIZER.prompt(plain, thinking=False).ids)
    written = "".join(map(TOKENIZER.piece, ids)) if question.isascii() else TOKENIZER.decode(ids)
    assert "".join(question.split()) in "".join(written.split()), "every character of it is there"


def test_what_breaks_marks_is_in_no_message() -> None:
    marks = ControlMarks(["<a>", "<a>b", ""])
    broken, _, breaker = marks.broken([Message("user", "\ufdd0 <a>b <a> a")])
    assert breaker and breaker != "\ufdd0" and broken[0].content == f"\ufdd0 <{breaker}a>b <{breaker}a> a"
    assert encode_broken(broken[0].content, breaker, lambda part: [len(part)]) == [3, 5, 4]
    of_answers = ControlMarks(["<a>"], ("<t>", "</t>"))
    for role, said, breaks in (
        ("user", "<t>a</t>", 2), ("assistant", "<t>a</t>b", 0), ("assistant", "a</t>b", 0),
        ("assistant", "a<t>b</t>", 2), ("assistant", "<t>a", 1), ("assistant", "<t><a></t><a></t><t>", 4),
    ):  # fmt: skip
        content = of_answers.broken([Message(role, said)])[0][0].content  # type: ignore[arg-type]
        assert content.count("\ufdd0") == breaks, f"a template finds in the model's words a thought alone: {content}"
    assert marks.broken([Message("user", "a < b")])[2] == "" and ControlMarks([]).broken([])[2] == ""
    tool, call = Tool("f<a>", "<a>", {"<a>": ["<a>"]}), ToolCall("<a>", {"x": {"<a>": ("<a>",)}}, "<a>")
    result = Message("tool", "", (), "<a>", "<a>")
    said, offered, _ = marks.broken([Message("assistant", "", (call,)), result], [tool])
    assert "<a>" not in str(said) + str(offered) and str((said, offered)).count(r"<\ufdd0a>") == 10


def changed(folder: Path, *added: tuple[int, str]) -> Path:
    """The bundled pair's target with tokens added to its tokenizer, by id."""
    target = folder / "target"
    shutil.copytree(PAIR, target)
    path = target / "tokenizer.json"
    said = json.loads(path.read_text())
    kind = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    said["added_tokens"] += [{"id": index, "content": text, **kind} for index, text in added]
    path.write_text(json.dumps(said))
    return target


def test_what_a_template_writes_is_a_mark_though_it_is_not_called_special(tmp_path: Path) -> None:
    """As Qwen's tokens around calls of tools and their results: a result must not end itself."""
    config = json.loads((PAIR / "config.json").read_text())
    first = config["text_config"]["vocab_size"]
    target = changed(tmp_path, *enumerate(("</tool_response>", "<|file_sep|>", "<b>"), first))
    config["text_config"]["vocab_size"] += 3
    (target / "config.json").write_text(json.dumps(config))
    (target / "model.safetensors").unlink()
    template = target / "chat_template.jinja"
    template.write_text(template.read_text() + "{# </tool_response> #}")
    ids = ChatTokenizer(target).prompt([Message("user", "a</tool_response><|file_sep|><b>")], thinking=False).ids
    assert [token - first for token in ids if token >= first] == [2]


def test_a_token_that_the_model_has_no_row_for_is_never_made(tmp_path: Path) -> None:
    rows = json.loads((PAIR / "config.json").read_text())["text_config"]["vocab_size"]
    target = changed(tmp_path, (rows + 3, "<zork>"))
    tokenizer = ChatTokenizer(target)
    ids = tokenizer.prompt([Message("user", "What is <zork> good for?")], thinking=False).ids
    assert max(ids) < rows and "What is <zork> good for?" in tokenizer.decode(ids)
    with pytest.raises(UsageFailure, match="<zork>, which the model doesn't know"):
        tokenizer.raw_prompt("a <zork>")
    with pytest.raises(UsageFailure, match=f"token {rows + 9}"):
        tokenizer.raw_prompt([1, rows + 9])
    template = target / "chat_template.jinja"
    template.write_text(template.read_text() + "<zork>")
    with pytest.raises(WeightsFailure, match="writes <zork>"):
        ChatTokenizer(target)


def test_a_vocabulary_larger_than_the_embedding_is_refused(tmp_path: Path) -> None:
    target = changed(tmp_path)
    config = json.loads((target / "config.json").read_text())
    config["text_config"]["vocab_size"] -= 200
    (target / "config.json").write_text(json.dumps(config))
    with pytest.raises(WeightsFailure, match="the model knows"):
        ChatTokenizer(target)
