"""Computes figures of speculative decoding from recorded rounds, whoever ran them: the batched loop here, or the
engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .generation import GeneratedAnswer


@dataclass(frozen=True, slots=True)
class Speculation:
    """Figures over all cycles except the last of each answer, which the answer's end cuts short."""

    cycles: int
    tau: float
    """Mean acceptance length, bonus token counted."""
    full: float
    """Share of cycles that accepted the whole block."""
    short: float
    """Share of cycles that yielded at most two tokens."""
    by_position: tuple[float, ...]
    """Share of cycles that accepted the draft at each position of the block, and so all before it."""


def speculation(answers: Iterable[GeneratedAnswer], block_size: int) -> Speculation:
    """Adds up the figures of answers that were drafted in blocks of this size."""
    lengths = [accepted + 1 for answer in answers for accepted in answer.accepted[:-1]]
    count = max(len(lengths), 1)
    return Speculation(
        cycles=len(lengths),
        tau=sum(lengths) / count,
        full=sum(length == block_size for length in lengths) / count,
        short=sum(length <= 2 for length in lengths) / count,
        by_position=tuple(
            round(sum(length > position for length in lengths) / count, 4) for position in range(1, block_size)
        ),
    )
