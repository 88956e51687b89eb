"""Which code block of a conversation is meant: of the newest answer that has any, by its number."""

from __future__ import annotations

from collections.abc import Iterable

from ..text.fences import CodeBlock, find_blocks
from .slash import SlashError


def newest_blocks(answers: Iterable[str]) -> list[CodeBlock]:
    """The code blocks of the first of ``answers`` that has any. Raises ``SlashError`` where none has."""
    blocks = next((blocks_of_answer for text in answers if (blocks_of_answer := find_blocks(text))), [])
    if not blocks:
        raise SlashError("There is no code block yet.")
    return blocks


def chosen_block(answers: Iterable[str], number: str) -> CodeBlock:
    """The one of them with this number, the last one without. Raises ``SlashError``."""
    blocks = newest_blocks(answers)
    if not number:
        return blocks[-1]
    if number.isdecimal() and 1 <= int(number) <= len(blocks):
        return blocks[int(number) - 1]
    raise SlashError(f"There is no code block {number}. The newest answer with code has {len(blocks)}.")
