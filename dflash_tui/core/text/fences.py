"""Code blocks in Markdown: where a fence opens and closes, what is inside, and what the file would be called."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from .nested_fences import pairs_of_fences

_ATTRIBUTE = re.compile(r"(?:title|file|filename|name|path)=(?P<quote>[\"']?)(?P<name>.+?)(?P=quote)(?=\s|$|[,}])")
_FILE_NAME = re.compile(r"(?!\W*\w{1,10}\Z)[^\s={}<>|*?\"]*\.\w{1,10}")
"""Matches a whole name, in linear time: an ending, and before it not dots and dashes alone."""
_BRACES = re.compile(r"\{(?P<inside>[^{}]*)(?:\}|$)")
"""Attributes as Pandoc and others have them: ``{.python .numberLines}``, ``{python}``, ``js {1,3}``."""
_BRACKETED = re.compile(r"^[(\[](.*)[)\]]$")
_LANGUAGE = re.compile(r"[^\s,;:{}()\[\]<>\"'`]*")

_DEFAULT_NAMES = {
    "bash": "script.sh",
    "c": "main.c",
    "c++": "main.cpp",
    "cpp": "main.cpp",
    "css": "style.css",
    "csv": "data.csv",
    "go": "main.go",
    "html": "index.html",
    "java": "Main.java",
    "javascript": "script.js",
    "js": "script.js",
    "json": "data.json",
    "markdown": "document.md",
    "md": "document.md",
    "py": "main.py",
    "python": "main.py",
    "rust": "main.rs",
    "sh": "script.sh",
    "sql": "query.sql",
    "svg": "image.svg",
    "toml": "config.toml",
    "ts": "main.ts",
    "typescript": "main.ts",
    "xml": "document.xml",
    "yaml": "config.yaml",
    "yml": "config.yaml",
}
_EXTENSIONS = {name.rpartition(".")[2]: language for language, name in sorted(_DEFAULT_NAMES.items())}
"""Extension to a language: enough to tell a file name from a language when it is the only word."""
_DOCUMENTS = frozenset({"markdown", "md", "mdx", "mkd", "qmd", "rmd", "rmarkdown", "quarto", "gfm", "commonmark"})
"""Languages of documents, and endings of their names: fences are to be expected within such blocks."""
_HEAD = 400
"""Characters of a block that tell what it is."""
_BEGINNINGS = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"#!\S*(/| )(python|pypy)", "main.py"),
        (r"#!\S*(/| )(node|deno|bun)", "script.js"),
        (r"#!\S*(/| )(ba|z|da|k)?sh\b", "script.sh"),
        (r"<!doctype html|<html", "index.html"),
        (r"(<\?xml[^>]*>\s*)?<svg", "image.svg"),
        (r"<\?xml", "document.xml"),
        (r"(from [\w.]+ import |import [\w.]+( as \w+)?\s*\n|(async )?def \w+\(|class \w+[:(])", "main.py"),
        (r"#include\s*<", "main.c"),
        (r"package main\b", "main.go"),
        (r"(select\s.+\sfrom\s|create table\s|insert into\s)", "query.sql"),
    )
)
"""What a file of a kind begins with, lower case."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    number: int
    """The block's number in the text, counted from 1."""
    language: str
    """Lower case; empty when the fence names none."""
    info: str
    """What stands behind the opening fence, stripped."""
    filename: str | None
    """The file's name that the block's first line says, else one usual for its language or content, else None.
    Unchecked: it is the model's word."""
    content: str
    """Between the fences, verbatim but for the fence's own indentation."""
    closed: bool
    """False for a last block whose closing fence is missing."""


def find_blocks(text: str) -> list[CodeBlock]:
    """The fenced code blocks of a Markdown text by CommonMark's rules (backticks or tildes, closed by an equal fence at
    least as long), but with any indent: models write fences inside lists. A block that holds fences itself, as a
    document does, goes on to its own end."""
    blocks: list[CodeBlock] = []
    text = f"\n{text}"
    for opening, closing in pairs_of_fences(text, holds_fences):
        start, stop = opening.end, closing.start if closing else len(text)
        content = _dedent(text[start + 1 : stop + 1], opening.indent)
        blocks.append(_make_block(len(blocks) + 1, opening.info, content, closing is not None))
    return blocks


def holds_fences(info: str) -> bool:
    """Whether a block's fence says that it is a document, in which fences are to be expected."""
    language, filename = _read_info(info)
    return language in _DOCUMENTS or (filename or "").lower().rpartition(".")[2] in _DOCUMENTS


def describe_blocks(text: str) -> str:
    """The numbers and names of a text's code blocks on one line, as ``/save n`` takes them, and what else can be done
    with them; empty without one."""
    blocks = find_blocks(text)
    names = [f"[{block.number}] {block.filename or block.language or 'text'}" for block in blocks]
    endings = {(block.filename or "").rpartition(".")[2] for block in blocks}
    offers = [offer for ending, offer in _OFFERS.items() if ending in endings]
    save = "Ctrl+S saves it" if len(blocks) == 1 else "Ctrl+S saves the last"
    return f"code: {'  '.join(names)} · {' · '.join([save, *offers])}" if blocks else ""


_OFFERS = {"html": "/open shows it"}
"""What else can be done with a block, by the ending of its name."""


def _dedent(content: str, indent: int) -> str:
    return re.sub(rf"^[ \t]{{1,{indent}}}", "", content, flags=re.MULTILINE) if indent else content


def _make_block(number: int, info: str, content: str, closed: bool) -> CodeBlock:
    language, filename = _read_info(info)
    return CodeBlock(number, language, info, filename or _name_by_content(content), content, closed)


def _name_by_content(content: str) -> str | None:
    """A name for a block whose fence gives none, from what it begins with."""
    head = content.lstrip()[:_HEAD].lower()
    if head.startswith(("{", "[")) and _is_json(content):
        return _DEFAULT_NAMES["json"]
    return next((name for pattern, name in _BEGINNINGS if pattern.match(head)), None)


def _is_json(content: str) -> bool:
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def _read_info(info: str) -> tuple[str, str | None]:
    """Language and file name of an info string: ``html``, ``html index.html``, ``html title="index.html"``,
    ``html:index.html``, ``index.html`` and ``{.html}`` are all in use."""
    attributes = _BRACES.match(info)
    if attributes:
        info = f"{attributes['inside'].strip().removeprefix('.')} {info[attributes.end() :]}"
    first, _, rest = info.partition(" ")
    head, colon, tail = first.partition(":")
    if colon and _FILE_NAME.fullmatch(tail):
        first, rest = head, f"{tail} {rest}"
    stem, _, extension = first.rpartition(".")
    if extension.lower() in _EXTENSIONS and first.startswith("."):
        first = extension
    elif stem and extension.lower() in _EXTENSIONS and _FILE_NAME.fullmatch(first):
        return _EXTENSIONS[extension.lower()], first
    match = _LANGUAGE.match(first)
    language = match[0].lower() if match else ""
    return language, _named_file(rest) or _DEFAULT_NAMES.get(language)


def _named_file(words: str) -> str | None:
    attribute = _ATTRIBUTE.search(words)
    if attribute:
        return attribute["name"]
    bare = (_BRACKETED.sub(r"\1", word.strip("\"'`,;:")) for word in words.split())
    return next((word for word in bare if _FILE_NAME.fullmatch(word)), None)
