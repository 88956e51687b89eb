"""Operands within what the steps can carry, and the plans that turn operands into worked steps."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from engine.lab.demo.corpus.maths.steps import Work, add, divide, multiply, multiply_long, percent, subtract
from engine.lab.demo.corpus.sample import is_held_out
from engine.lab.demo.corpus.wording import pick

Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to compute: how to draw its operands (a, b, ...) and how to work it out."""

    draw: Callable[[random.Random], Numbers]
    solve: Callable[[Numbers], list[Work]]


def _sum_pair(rng: random.Random) -> Numbers:
    share = rng.random()
    if share < 0.65:
        return rng.randint(11, 99), rng.randint(11, 99)
    if share < 0.75:
        return rng.randint(11, 99), rng.randint(2, 9)
    if share < 0.85:
        return rng.randint(1, 20), rng.randint(1, 10)
    a = rng.randint(100, 899)
    return a, rng.randint(11, 999 - a)


def _difference_pair(rng: random.Random) -> Numbers:
    share = rng.random()
    if share < 0.65:
        a = rng.randint(21, 99)
        return a, rng.randint(11, a - 2)
    if share < 0.75:
        return rng.randint(12, 99), rng.randint(2, 9)
    if share < 0.85:
        a = pick(rng, (*range(4, 21), 100))
        return a, rng.randint(1, a - 2)
    a = rng.randint(121, 599)
    return a, rng.randint(11, min(a - 11, 399))


def _product_pair(rng: random.Random) -> Numbers:
    return (rng.randint(11, 99) if rng.random() < 0.85 else rng.randint(3, 10)), rng.randint(2, 9)


def _table_pair(rng: random.Random) -> Numbers:
    """From the multiplication table, where one factor has one digit."""
    return rng.randint(0, 12), rng.randint(0, 9)


def _long_product_pair(rng: random.Random) -> Numbers:
    """Two factors of two digits, mostly small ones."""
    if rng.random() < 0.6:
        return rng.randint(11, 25), rng.randint(11, 20)
    return rng.randint(11, 99), rng.randint(11, 99)


def _square(rng: random.Random) -> Numbers:
    number = rng.randint(11, 40)
    return number, number


def _quotient_pair(rng: random.Random) -> Numbers:
    divisor = rng.randint(2, 9)
    return divisor * rng.randint(3, 40), divisor


def _negative_pair(rng: random.Random) -> Numbers:
    larger, smaller = _difference_pair(rng)
    return smaller, larger


def _inexact_pair(rng: random.Random) -> Numbers:
    divisor = rng.randint(2, 9)
    return divisor * rng.randint(2, 30) + rng.randint(1, divisor - 1), divisor


def _percent_pair(rng: random.Random) -> Numbers:
    rate = pick(rng, (5, 10, 20, 25, 30, 40, 50, 60, 70, 80, 90))
    unit = {5: 20, 25: 40, 50: 20}.get(rate, 10)
    return rate, unit * rng.randint(40 // unit, 400 // unit)


def _discount(rng: random.Random) -> Numbers:
    rate = pick(rng, (10, 20, 25, 30, 40, 50))
    unit = {25: 40, 50: 20}.get(rate, 10)
    return rate, unit * rng.randint(40 // unit, 200 // unit)


def _add_then_subtract(rng: random.Random) -> Numbers:
    a, b = rng.randint(11, 89), rng.randint(5, 69)
    return a, b, rng.randint(3, min(a + b - 3, 79))


def _subtract_then_add(rng: random.Random) -> Numbers:
    a = rng.randint(25, 99)
    return a, rng.randint(3, a - 5), rng.randint(3, 69)


def _three_terms(rng: random.Random) -> Numbers:
    return rng.randint(11, 79), rng.randint(11, 79), rng.randint(5, 59)


def _multiply_then_add(rng: random.Random) -> Numbers:
    return rng.randint(3, 40), rng.randint(2, 9), rng.randint(3, 69)


def _multiply_then_subtract(rng: random.Random) -> Numbers:
    a, b = rng.randint(5, 40), rng.randint(2, 9)
    return a, b, rng.randint(2, min(a * b - 3, 69))


def _add_then_multiply(rng: random.Random) -> Numbers:
    return rng.randint(3, 29), rng.randint(3, 29), rng.randint(2, 9)


def _subtract_then_divide(rng: random.Random) -> Numbers:
    divisor = rng.randint(2, 9)
    rest = divisor * rng.randint(3, 15)
    spare = rng.randint(2, 29)
    return rest + spare, spare, divisor


def _add_then_divide(rng: random.Random) -> Numbers:
    divisor = rng.randint(2, 9)
    total = divisor * rng.randint(4, 20)
    a = rng.randint(2, total - 2)
    return a, total - a, divisor


def _mean_pair(rng: random.Random) -> Numbers:
    a = rng.randint(10, 90)
    b = rng.randint(10, 90)
    return a, b + (a + b) % 2


def _chain(first: Work, then: Callable[[int], Work]) -> list[Work]:
    return [first, then(first.value)]


PLANS: dict[str, Plan] = {
    "add": Plan(_sum_pair, lambda n: [add(n[0], n[1])]),
    "subtract": Plan(_difference_pair, lambda n: [subtract(n[0], n[1])]),
    "multiply": Plan(_product_pair, lambda n: [multiply(n[0], n[1])]),
    "table": Plan(_table_pair, lambda n: [multiply(n[0], n[1])]),
    "product": Plan(_long_product_pair, lambda n: multiply_long(n[0], n[1])),
    "square": Plan(_square, lambda n: multiply_long(n[0], n[1])),
    "divide": Plan(_quotient_pair, lambda n: [divide(n[0], n[1])]),
    "negative": Plan(_negative_pair, lambda n: [subtract(n[0], n[1])]),
    "remainder": Plan(_inexact_pair, lambda n: [divide(n[0], n[1])]),
    "percent": Plan(_percent_pair, lambda n: [percent(n[0], n[1])]),
    "discount": Plan(_discount, lambda n: _chain(percent(n[0], n[1]), lambda off: subtract(n[1], off))),
    "add_subtract": Plan(_add_then_subtract, lambda n: _chain(add(n[0], n[1]), lambda v: subtract(v, n[2]))),
    "subtract_add": Plan(_subtract_then_add, lambda n: _chain(subtract(n[0], n[1]), lambda v: add(v, n[2]))),
    "add_add": Plan(_three_terms, lambda n: _chain(add(n[0], n[1]), lambda v: add(v, n[2]))),
    "multiply_add": Plan(_multiply_then_add, lambda n: _chain(multiply(n[0], n[1]), lambda v: add(v, n[2]))),
    "multiply_subtract": Plan(
        _multiply_then_subtract, lambda n: _chain(multiply(n[0], n[1]), lambda v: subtract(v, n[2]))
    ),
    "add_multiply": Plan(_add_then_multiply, lambda n: _chain(add(n[0], n[1]), lambda v: multiply(v, n[2]))),
    "subtract_divide": Plan(_subtract_then_divide, lambda n: _chain(subtract(n[0], n[1]), lambda v: divide(v, n[2]))),
    "add_divide": Plan(_add_then_divide, lambda n: _chain(add(n[0], n[1]), lambda v: divide(v, n[2]))),
    "mean": Plan(_mean_pair, lambda n: _chain(add(n[0], n[1]), lambda v: divide(v, 2))),
}


def combination(works: list[Work]) -> str:
    """The name under which the problem is trained on or held out.

    A problem with any held-out pair takes that pair's name, so that no training answer shows a held-out pair.
    """
    return next((work.key for work in works if is_held_out(work.key)), works[0].key)
