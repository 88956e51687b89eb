from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.core.text.fences import CodeBlock, describe_blocks, find_blocks


def only(text: str) -> CodeBlock:
    (block,) = find_blocks(text)
    return block


def test_a_block_between_prose() -> None:
    block = only("Here:\n\n```python\nprint(1)\n```\nDone.\n")
    assert block == CodeBlock(1, "python", "python", "main.py", "print(1)\n", closed=True)


def test_blocks_are_numbered_in_order() -> None:
    blocks = find_blocks("```css\na\n```\ntext\n~~~js\nb\n~~~\n")
    assert [(b.number, b.language, b.content) for b in blocks] == [(1, "css", "a\n"), (2, "js", "b\n")]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("````markdown\n```python\nx\n```\n````\n", "```python\nx\n```\n"),
        ("~~~\n```\n~~~\n", "```\n"),
        ("```\n``` python\n```\n", "``` python\n"),
        ("1. so:\n   ```py\n   if x:\n       y\n  z\n   ```\n", "if x:\n    y\nz\n"),
        ("```\n    ```\n```\n", "    ```\n"),
        ("```js\r\na\x0cb\u2028c\r\n```\r\n", "a\x0cb\u2028c\r\n"),
    ],
    ids=["longer fence", "other fence", "info string", "indented fence", "deep inside", "carriage returns"],
)
def test_what_ends_no_block_is_content(text: str, content: str) -> None:
    assert only(text).content == content


@pytest.mark.parametrize(("text", "content"), [("```html\n<p>half", "<p>half"), ("text\n```", "")])
def test_an_unclosed_last_block_is_salvaged(text: str, content: str) -> None:
    assert (only(text).content, only(text).closed) == (content, False)


@pytest.mark.parametrize("text", ["```not `a` fence```\n", "``\nx\n``\n~~ y\n"])
def test_inline_code_and_short_fences_open_nothing(text: str) -> None:
    assert find_blocks(text) == []


@pytest.mark.parametrize(
    ("info", "language", "filename"),
    [
        ("html", "html", "index.html"),
        ("HTML", "html", "index.html"),
        ("html index.html", "html", "index.html"),
        ("html drone-swarm.html", "html", "drone-swarm.html"),
        ('html title="my page.html"', "html", "my page.html"),
        ("html title=page.html", "html", "page.html"),
        ("{.html", "html", "index.html"),
        ('{.python filename="x.py"}', "python", "x.py"),
        ("python{1,3}", "python", "main.py"),
        ("html (index.html)", "html", "index.html"),
        (".py", "py", "main.py"),
        ("/app/main.py", "python", "/app/main.py"),
        ("python:src/app.py", "python", "src/app.py"),
        ("index.html", "html", "index.html"),
        ("brainfuck", "brainfuck", None),
        ("", "", None),
    ],
)
def test_language_and_filename_come_from_the_info_string(info: str, language: str, filename: str | None) -> None:
    block = only(f"```{info}\n```\n")
    assert (block.language, block.info, block.filename) == (language, info, filename)


@pytest.mark.parametrize(
    ("content", "filename"),
    [
        ("#!/usr/bin/env python3\nprint()\n", "main.py"),
        ("#!/usr/bin/env bash\nls\n", "script.sh"),
        ("\n<!DOCTYPE html>\n<html></html>\n", "index.html"),
        ("<svg xmlns='x'></svg>\n", "image.svg"),
        ('<?xml version="1.0"?>\n<svg/>\n', "image.svg"),
        ('<?xml version="1.0"?>\n<feed/>\n', "document.xml"),
        ('{"a": [1]}\n', "data.json"),
        ("{a: 1}\n", None),
        ("from os import path\n", "main.py"),
        ("SELECT a\nFROM t;\n", "query.sql"),
        ("import duties are due\n", None),
        ("", None),
    ],
)
def test_a_block_without_a_name_is_named_by_its_content(content: str, filename: str | None) -> None:
    assert only(f"```\n{content}```\n").filename == filename
    assert only(f"```text notes.txt\n{content}```\n").filename == "notes.txt"


def test_the_blocks_of_an_answer_on_one_line() -> None:
    text = "```html\n```\n```\nwords\n```\n```brainfuck\n"
    listed = "[1] index.html  [2] text  [3] brainfuck"
    assert describe_blocks(text) == f"code: {listed} · Ctrl+S saves the last · /open shows it"
    assert describe_blocks("no code") == ""


DOCUMENT = "# Title\n\n{}\n\nLast line.\n"


@pytest.mark.parametrize(
    ("before", "held", "behind"),
    [
        ("```markdown", "```python\nx\n```", "That was it."),
        ("```md", "```python\nx\n```\n\nand\n\n```\nout\n```", "\nThat was it.\n\n```sh\nls\n```\n"),
        ("```markdown", "~~~\n```\n~~~\n```sh\nls\n```", "\n```\nls\n```\n"),
        ("~~~markdown", "~~~sh\nls\n~~~", "\n~~~\nls\n~~~\n"),
        ("```", "```sh\nls\n```", "\nDone.\n"),
        ("```python", "```json\n{}\n```", "\n```html\n<p>\n```\n"),
        ("````markdown", "```sh\nls\n```", ""),
        ("```markdown", "1. so\n   ```sh\n   ls\n   ```", ""),
        ("```markdown", "no fence", "\n```\nout\n```\n\n```\nagain\n```\n"),
    ],
)
def test_a_document_that_holds_fences_is_whole(before: str, held: str, behind: str) -> None:
    content = DOCUMENT.format(held)
    blocks = find_blocks(f"Here:\n\n{before}\n{content}{before[:3]}{'`' if before[3:4] == '`' else ''}\n{behind}")
    assert blocks[0].content == content and blocks[0].closed
    assert len(blocks) == 1 + behind.count(f"\n{before[:3]}") // 2 and all(block.closed for block in blocks)


def test_a_document_that_was_cut_off_is_kept_as_far_as_it_goes() -> None:
    text = "```markdown\n# T\n```sh\nls\n```\nmore\n```sh\npw"
    assert (only(text).content, only(text).closed) == (text.partition("\n")[2], False)


def test_a_block_behind_one_without_an_end_is_read_as_ever() -> None:
    blocks = find_blocks("```python\nx\n\n```html\n<p>\n```\n\n```css\na\n```\n")
    assert [block.content for block in blocks] == ["x\n\n```html\n<p>\n", "a\n"]


_inner = st.tuples(
    st.sampled_from(["sh", "python", "json x.json", ""]), st.lists(st.sampled_from(["a", "  b", "c c"]), min_size=1)
)
_answer = st.lists(st.tuples(st.booleans(), st.lists(_inner, min_size=1, max_size=4)), min_size=1, max_size=4)


@given(_answer, st.sampled_from(["```", "~~~"]))
def test_documents_and_other_blocks_in_any_order(
    answer: list[tuple[bool, list[tuple[str, list[str]]]]], fence: str
) -> None:
    """An end has an empty line behind it, and code begins in the line behind its fence."""
    text, contents = "", []
    for document, inner in answer:
        blocks = ["\n".join([f"{fence}{info}", *lines, fence, ""]) for info, lines in inner]
        contents += ["# T\n\n" + "\n".join(blocks)] if document else ["\n".join([*lines, ""]) for _, lines in inner]
        text += f"Words.\n\n{fence}markdown\n{contents[-1]}{fence}\n\n" if document else "\n".join([*blocks, ""])
    assert [block.content for block in find_blocks(text)] == contents


_code_lines = st.lists(st.text(st.characters(exclude_characters="\n`~")).map(lambda line: line + "\n"))


@given(lines=_code_lines, fence=st.sampled_from(["```", "~~~", "`````"]), before=st.sampled_from(["", "words\n\n"]))
def test_content_is_verbatim(lines: list[str], fence: str, before: str) -> None:
    content = "".join(lines)
    assert only(f"{before}{fence}python\n{content}{fence}\nafter").content == content


@given(st.text(st.sampled_from("`~ \nabc.=\"'")))
def test_any_text_is_read_and_only_the_last_block_can_be_open(text: str) -> None:
    blocks = find_blocks(text)
    assert [block.number for block in blocks] == list(range(1, len(blocks) + 1))
    assert all(block.closed for block in blocks[:-1])


def test_a_long_word_behind_a_fence_is_no_name_and_no_work() -> None:
    (block,) = find_blocks(f"```js {'x' * 200_000}\n```")
    assert block.filename == "script.js", "a pattern that tries it twice takes minutes"
