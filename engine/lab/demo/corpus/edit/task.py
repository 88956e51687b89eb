"""What an editing task is: a file, a wish, and the one text that grants it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from engine.lab.demo.corpus.edit.content import File


@dataclass(frozen=True, slots=True)
class Edit:
    file: File
    wish: str
    """The instruction; it may name the file."""
    intro: str
    """What the answer says before the result."""
    result: str
    key: str
    """What tells this edit apart from others of its task: the name that was copied. It decides what is held out."""
    fenced: bool = True
    """Whether the result stands in a fence, or as plain text."""


Task = Callable[[random.Random], Edit]
