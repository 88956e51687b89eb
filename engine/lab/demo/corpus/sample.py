"""What a generator yields, and which combinations are kept for evaluation."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any, Literal

Domain = Literal["code", "html", "maths", "explain", "chat", "unknown", "screen", "follow", "edit"]

HELD_OUT_PERCENT = 15


@dataclass(frozen=True, slots=True)
class Sample:
    """One exchange: a prompt and the answer that the target is trained to give."""

    domain: Domain
    prompt: str
    response: str
    combination: str
    """Names the topic and the modifiers that shape the answer ("bubble_sort/typed/recursive"), not the prompt's
    noise: samples of one combination are either all trained on or all held out."""
    check: dict[str, Any] = field(default_factory=dict)
    """JSON-ready facts for the domain's checker: what a right answer to *this* prompt must satisfy."""
    before: tuple[tuple[str, str], ...] = ()
    """Exchanges, as (prompt, answer), that the prompt refers to."""
    opens: bool = False
    """Whether it can only begin a conversation: the answer says that nothing came before."""

    @property
    def held_out(self) -> bool:
        return is_held_out(self.combination)


def is_held_out(combination: str) -> bool:
    """Whether a combination is reserved for evaluation; stable across runs and machines."""
    return zlib.crc32(combination.encode()) % 100 < HELD_OUT_PERCENT
