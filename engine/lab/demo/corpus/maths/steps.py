"""Worked arithmetic: every operation as a chain of facts small enough to be learnt by heart.

A model of a few million parameters that reads one digit per token cannot produce `47 + 38 = 85` for pairs it never saw,
but it can learn the few hundred facts that the spelled-out steps consist of.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

_OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@dataclass(frozen=True, slots=True)
class Work:
    """One operation, worked out."""

    key: str
    """Operation and operands ("add/38/47"): the unit of holding out. Sorted where order does not matter."""
    text: str
    """The steps as a line: "47 + 38: 40 + 30 = 70, 7 + 8 = 15, 70 + 15 = 85."."""
    value: int
    remainder: int = 0


def _fact(a: int, symbol: str, b: int) -> tuple[str, int]:
    value = _OPERATIONS[symbol](a, b)
    return f"{a} {symbol} {b} = {value}", value


def _line(header: str, facts: list[str]) -> str:
    """The header is left out where the only fact already says it."""
    steps = ", ".join(facts)
    return f"{steps}." if len(facts) == 1 and facts[0].startswith(header + " =") else f"{header}: {steps}."


def _places(number: int) -> list[int]:
    """Hundreds, tens and ones of a number below 1000: 407 -> [400, 0, 7]."""
    return [number // 100 * 100, number // 10 % 10 * 10, number % 10]


def add(a: int, b: int) -> Work:
    """Adds by places, then the places' sums from the largest down. Below 1000."""
    facts: list[str] = []
    sums: list[int] = []
    for x, y in zip(_places(a), _places(b), strict=True):
        if x and y:
            fact, total = _fact(x, "+", y)
            facts.append(fact)
            sums.append(total)
        elif x or y:
            sums.append(x or y)
    total = sums[0] if sums else 0
    for part in sums[1:]:
        fact, total = _fact(total, "+", part)
        facts.append(fact)
    low, high = sorted((a, b))
    return Work(f"add/{low}/{high}", _line(f"{a} + {b}", facts), a + b)


def subtract(a: int, b: int) -> Work:
    """Takes away the hundreds, the tens, then the ones of b; where b is larger, the other way round. Below 1000."""
    larger, smaller = max(a, b), min(a, b)
    facts: list[str] = []
    rest = larger
    for part in _places(smaller):
        if part:
            fact, rest = _fact(rest, "-", part)
            facts.append(fact)
    line = _line(f"{larger} - {smaller}", facts)
    text = line if a >= b else f"{a} is less than {b}, so the result is negative.\n{line}"
    return Work(f"sub/{larger}/{smaller}", text, rest if a >= b else -rest)


def _product_facts(number: int, digit: int) -> tuple[list[str], int]:
    tens, ones = number // 10 * 10, number % 10
    if not (tens and ones):
        fact, value = _fact(number, "*", digit)
        return [fact], value
    first, high = _fact(tens, "*", digit)
    second, low = _fact(ones, "*", digit)
    facts, value = [first, second], high
    for part in _places(low):
        if part:
            fact, value = _fact(value, "+", part)
            facts.append(fact)
    return facts, value


def multiply(a: int, b: int) -> Work:
    """Multiplies a number below 100 by a digit; the larger factor is written first."""
    digit, number = sorted((a, b))
    return _times(number, digit, f"mul/{digit}/{number}")


def multiply_long(a: int, b: int) -> list[Work]:
    """Multiplies two numbers from 11 to 99: by the tens of the smaller one, by its ones, and adds up."""
    factor, number = sorted((a, b))
    tens, ones = factor // 10 * 10, factor % 10
    high = _times(number, tens, f"product/{factor}/{number}")
    if not ones:
        return [high]
    low = _times(number, ones, f"mul/{ones}/{number}")
    return [high, low, add(high.value, low.value)]


def _times(number: int, factor: int, key: str) -> Work:
    if factor in (0, 1, 10):  # nobody takes a number apart for these
        fact, value = _fact(number, "*", factor)
        return Work(key, _line(f"{number} * {factor}", [fact]), value)
    facts, value = _product_facts(number, factor)
    return Work(key, _line(f"{number} * {factor}", facts), value)


def divide(a: int, b: int) -> Work:
    """Divides by a digit, quotient from 1 to 99: first the tens of the quotient, then the ones, then the rest."""
    quotient, remainder = divmod(a, b)
    parts = [part for part in _places(quotient) if part]
    facts: list[str] = []
    rest = a
    for part in parts:
        fact, known = _fact(part, "*", b)
        facts.append(fact)
        if part is not parts[-1] or remainder:
            less, rest = _fact(rest, "-", known)
            facts.append(less)
        else:
            facts.append(_fact(rest, "/", b)[0])
    if len(parts) > 1:
        facts.append(_fact(parts[0], "+", parts[1])[0])
    return Work(f"div/{a}/{b}", _line(f"{a} / {b}", facts), quotient, remainder)


def percent(rate: int, number: int) -> Work:
    """A percentage by way of a tenth (5, 10, 20, ...), a half (50) or a quarter (25); must come out whole."""
    if rate in (25, 50):
        fact, value = _fact(number, "/", 100 // rate)
        facts = [fact]
    else:
        fact, tenth = _fact(number, "/", 10)
        facts, value = [fact], tenth
        if rate == 5:
            fact, value = _fact(tenth, "/", 2)
            facts.append(fact)
        elif rate > 10:
            more, value = _product_facts(tenth, rate // 10)
            facts += more
    return Work(f"percent/{rate}/{number}", f"{rate} % of {number}: {', '.join(facts)}.", value)
