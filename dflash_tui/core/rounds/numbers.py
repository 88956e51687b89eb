"""Numbers of packed steps: as few bytes as they are small. FORMAT.md describes them."""

from __future__ import annotations

from engine.events import MICROSECONDS, PROBABILITY_STEPS

MAX_NUMBER = 2**53
"""Numbers beyond this don't survive a trip through JSON readers, and no honest trace holds one."""
SECOND = 1000 * MICROSECONDS
"""Microseconds of a second; ``MICROSECONDS`` are those of a millisecond."""


class PackingError(ValueError):
    """These bytes are not a packed step."""


def put_number(out: bytearray, number: int) -> None:
    """Appends a number: seven bits a byte, lowest first; the eighth says that more follow."""
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def number(value: int) -> bytes:
    """A number alone."""
    out = bytearray()
    put_number(out, value)
    return bytes(out)


CHANCES = tuple(number(value) for value in range(PROBABILITY_STEPS + 2))
"""What a chance, or one more, is packed as. A step has dozens: looking them up is faster than putting them together."""


def put_signed(out: bytearray, number: int) -> None:
    put_number(out, unsigned(number))


def unsigned(number: int) -> int:
    """A number that may be negative as one that is not: small ones stay small."""
    return number * 2 if number >= 0 else -number * 2 - 1


def signed(number: int) -> int:
    """The inverse of :func:`unsigned`."""
    return number >> 1 if number % 2 == 0 else -(number >> 1) - 1


def microseconds(seconds: float) -> int:
    """In whole microseconds; what is no number, or out of range, is 0."""
    return whole(seconds, SECOND)


def whole(value: float, steps: int) -> int:
    """``value`` in whole steps; what is no number, or out of range, is 0: a record must not stop an answer."""
    return round(value * steps) if 0 <= value * steps <= MAX_NUMBER else 0


def doubt(probability: float) -> int:
    """1 - probability in whole steps: small for a confident model, and small numbers are short."""
    if 0 <= probability <= 1:
        return PROBABILITY_STEPS - round(probability * PROBABILITY_STEPS)
    return 0 if probability > 1 else PROBABILITY_STEPS


def belief(doubt: int) -> float:
    if doubt > PROBABILITY_STEPS:
        raise PackingError("a probability is below 0")
    return (PROBABILITY_STEPS - doubt) / PROBABILITY_STEPS
