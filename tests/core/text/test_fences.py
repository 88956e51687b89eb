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


def test_a_longer_fence_holds_shorter_ones() -> None:
    assert only("````markdown\n```python\nx\n```\n````\n").content == "```python\nx\n```\n"


def test_tildes_and_backticks_do_not_close_each_other() -> None:
    assert only("~~~\n```\n~~~\n").content == "```\n"


def test_a_line_with_an_info_string_closes_nothing() -> None:
    assert only("```\n``` python\n```\n").content == "``` python\n"


def test_an_unclosed_last_block_is_salvaged() -> None:
    block = only("```html\n<p>half")
    assert (block.content, block.closed) == ("<p>half", False)


def test_an_opening_fence_at_the_very_end_is_an_empty_open_block() -> None:
    assert (only("text\n```").content, only("text\n```").closed) == ("", False)


def test_backticks_in_the_info_string_make_inline_code() -> None:
    assert find_blocks("```not `a` fence```\n") == []


def test_fewer_than_three_characters_open_nothing() -> None:
    assert find_blocks("``\nx\n``\n~~ y\n") == []


def test_the_fence_s_indentation_is_taken_off_and_no_more() -> None:
    assert only("1. so:\n   ```py\n   if x:\n       y\n  z\n   ```\n").content == "if x:\n    y\nz\n"


def test_a_fence_indented_deep_inside_the_block_is_content() -> None:
    assert only("```\n    ```\n```\n").content == "    ```\n"


def test_only_line_feeds_end_lines_and_carriage_returns_stay() -> None:
    assert only("```js\r\na\x0cb\u2028c\r\n```\r\n").content == "a\x0cb\u2028c\r\n"


@pytest.mark.parametrize(
    ("info", "language", "filename"),
    [
        ("html", "html", "index.html"),
        ("HTML", "html", "index.html"),
        ("html index.html", "html", "index.html"),
        ("html drone-swarm.html", "html", "drone-swarm.html"),
        ('html title="my page.html"', "html", "my page.html"),
        ("html title=page.html", "html", "page.html"),
        ("python:src/app.py", "python", "src/app.py"),
        ("index.html", "html", "index.html"),
        ("python {linenos=true}", "python", "main.py"),
        ("brainfuck", "brainfuck", None),
        ("asp.net", "asp.net", None),
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
        ("#!/bin/sh\nls\n", "script.sh"),
        ("#!/usr/bin/env bash\nls\n", "script.sh"),
        ("#!/usr/bin/env node\n1\n", "script.js"),
        ("\n<!DOCTYPE html>\n<html></html>\n", "index.html"),
        ("<svg xmlns='x'></svg>\n", "image.svg"),
        ('<?xml version="1.0"?>\n<svg/>\n', "image.svg"),
        ('<?xml version="1.0"?>\n<feed/>\n', "document.xml"),
        ('{"a": [1]}\n', "data.json"),
        ("{a: 1}\n", None),
        ("from os import path\n", "main.py"),
        ("def f(x):\n    return x\n", "main.py"),
        ("SELECT a\nFROM t;\n", "query.sql"),
        ("Definitely no code\n", None),
        ("import duties are due\n", None),
        ("", None),
    ],
)
def test_a_block_without_a_name_is_named_by_its_content(content: str, filename: str | None) -> None:
    assert only(f"```\n{content}```\n").filename == filename
    assert only(f"```text notes.txt\n{content}```\n").filename == "notes.txt"


def test_the_blocks_of_an_answer_on_one_line() -> None:
    text = "```html\n```\n```\nwords\n```\n```brainfuck\n"
    assert describe_blocks(text) == "code: [1] index.html  [2] text  [3] brainfuck · Ctrl+S saves the last"
    assert describe_blocks("no code") == ""


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
