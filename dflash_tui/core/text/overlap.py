"""Words that a growing text may be in the middle of."""

from __future__ import annotations


def overlap(text: str, word: str, least: int = 1) -> int:
    """How many characters at the end of ``text`` are the beginning of ``word``, without being all of it; 0 where they
    are fewer than ``least``. Example: ``overlap("a <thi", "<think>")`` is 4."""
    longest = min(len(text), len(word) - 1)
    return next((size for size in range(longest, least - 1, -1) if text.endswith(word[:size])), 0)
