"""A file as it was when it was asked about. It stays with the session by content: a conversation that is opened again
has the same prompt, whatever has become of the file since; the same content is stored once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from ..text.counted import counted
from ..text.harmless import sanitise

_BACKTICKS = re.compile("`{3,}")
NAME_LENGTH = 120
"""Characters of a name that are shown."""


@dataclass(frozen=True)
class Attachment:
    """A text with a name. ``name`` is the user's word for it, in one harmless line."""

    name: str
    text: str
    num_tokens: int | None = None
    """How many tokens the model counts in it; None where nobody could tell."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the text: by it a session stores a content once."""
        return sha256(self.text.encode("utf-8", "replace")).hexdigest()

    @property
    def num_lines(self) -> int:
        return self.text.count("\n") + (not self.text.endswith("\n") and bool(self.text))

    @property
    def head(self) -> str:
        """The line that stands for it while it is folded."""
        return f"▸ {self.name} · {tokens_of(self)} · {counted(self.num_lines, 'line')}"


CHARACTERS = 4
"""Bytes of a token, about, where no tokenizer is at hand."""


def about_tokens(text: str) -> int:
    """Guess how many tokens a text has, by its bytes: texts beyond ASCII take more."""
    return -(-len(text.encode("utf-8", "replace")) // CHARACTERS)


def tokens_of(attachment: Attachment) -> str:
    """An attachment's length for people, such as ``120 tokens``; a guess has a tilde, ``~120 tokens``."""
    if attachment.num_tokens is not None:
        return counted(attachment.num_tokens, "token")
    return f"~{counted(about_tokens(attachment.text), 'token')}"


def one_line(name: str) -> str:
    """A path for people and for the prompt: nothing in it that ends the line, or that a terminal would act on."""
    line = sanitise(name.replace("\n", "␊").replace("\r", "␍").replace("`", "ˋ"))
    return line if len(line) <= NAME_LENGTH else f"…{line[-NAME_LENGTH + 1 :]}"


def with_files(question: str, files: Sequence[Attachment]) -> str:
    """What the model reads: the files, each in a fence longer than any in it, and the question behind them."""
    return "\n\n".join([*(f"File {file.name}:\n{fenced(file.text)}" for file in files), question])


def fenced(text: str) -> str:
    """A text in a Markdown code block, with a fence that nothing in the text ends."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{fence}"


_FILE = re.compile(r"File (?P<name>[^\n`]+):\n(?P<fence>`{3,})\n(?P<text>.*?\n)??(?P=fence)\n\n", re.DOTALL)


def without_files(prompt: str) -> tuple[str, tuple[Attachment, ...]]:
    """The inverse of :func:`with_files`, for whoever only has the prompt: a recording. A newline at the end of a file
    may be one too many."""
    files, start = [], 0
    while match := _FILE.match(prompt, start):
        files.append(Attachment(one_line(match["name"]), match["text"] or ""))
        start = match.end()
    return prompt[start:], tuple(files)


# In a session: a line for each content, and a reference in the question's line.


def content_line(file: Attachment) -> dict[str, Any]:
    return {"type": "file", "digest": file.digest, "text": file.text}


def reference(file: Attachment) -> dict[str, Any]:
    return {"name": file.name, "digest": file.digest} | ({"tokens": file.num_tokens} if file.num_tokens else {})


def referred(line: Mapping[str, Any], contents: Mapping[str, str]) -> tuple[Attachment, ...]:
    """The files of a question's line. Raises ``ValueError`` for one whose content is not in the session."""
    files = []
    for each in line.get("files", ()):
        if each["digest"] not in contents:
            raise ValueError(f"The content of {one_line(str(each['name']))} is missing in this conversation.")
        tokens = each.get("tokens")
        name = one_line(str(each["name"]))
        files.append(Attachment(name, contents[each["digest"]], tokens if isinstance(tokens, int) else None))
    return tuple(files)


Count = Callable[[str], int | None]
"""Tokens of a text, as the model counts; None where it can't tell."""
