"""System prompts as they are typed: the text itself, or ``@tutor.md`` for what is in that file; ``@@...`` begins with a
plain @."""

from __future__ import annotations

import os
from pathlib import Path

from ..attachments.attachment_reader import AttachmentError, read_file

_NO_SYSTEM = ("none", "off")


def read_system(text: str) -> str:
    """A system prompt, or what is in the file that ``@path`` names. Raises ``AttachmentError``."""
    if not text.startswith("@") or text.startswith("@@"):
        return text.removeprefix("@") if text.startswith("@@") else text
    name = text.removeprefix("@")
    if not name.strip():
        raise AttachmentError(
            "No file is named after the @.", "Name one, such as @tutor.md; @@ begins a text with an @."
        )
    prompt = read_file(Path(os.path.expanduser(name)), name).text.strip("\n")
    if not prompt.strip():
        raise AttachmentError(f"{name} is empty.", "Write the system prompt into it.")
    return prompt


def typed_system(words: str) -> str | None:
    """The system prompt that ``/system`` is told, or None if it is told that there is none. Raises as
    ``read_system``."""
    return None if words in _NO_SYSTEM else read_system(words)
