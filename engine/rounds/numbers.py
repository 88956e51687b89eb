"""Numbers of recorded rounds, as exact as the engine hands them out: microseconds, and thousandths of a probability."""

from __future__ import annotations

from .step import MICROSECONDS, PROBABILITY_STEPS

MAX_NUMBER = 2**53
"""Numbers beyond this don't survive a trip through JSON readers, and no honest record holds one."""
SECOND = 1000 * MICROSECONDS
"""Microseconds of a second; ``MICROSECONDS`` are those of a millisecond."""


class RecordError(ValueError):
    """Raised for bytes that are not recorded rounds."""


def microseconds(seconds: float) -> int:
    """A time in whole microseconds; what is no number, or out of range, becomes 0."""
    return whole(seconds, SECOND)


def whole(value: float, steps: int) -> int:
    """``value`` in whole steps; what is no number, or out of range, is 0: a record must not stop an answer."""
    return round(value * steps) if 0 <= value * steps <= MAX_NUMBER else 0


def to_thousandths(probability: float) -> int:
    """1 - probability in thousandths: small for a confident model, and small numbers are short."""
    if 0 <= probability <= 1:
        return PROBABILITY_STEPS - round(probability * PROBABILITY_STEPS)
    return 0 if probability > 1 else PROBABILITY_STEPS


def from_thousandths(doubt: int) -> float:
    """The inverse of :func:`to_thousandths`. Raises :class:`RecordError` for what no probability is stored as."""
    if not 0 <= doubt <= PROBABILITY_STEPS:
        raise RecordError("a probability is out of range")
    return (PROBABILITY_STEPS - doubt) / PROBABILITY_STEPS
