"""Arithmetic samples: right, worked in true steps, and held out by operand pair."""

from __future__ import annotations

import random
import re

import pytest

from engine.lab.demo.corpus import maths
from engine.lab.demo.corpus.maths import steps
from engine.lab.demo.corpus.sample import is_held_out


def test_steps_of_each_operation() -> None:
    assert steps.add(47, 38).text == "47 + 38: 40 + 30 = 70, 7 + 8 = 15, 70 + 15 = 85."
    assert steps.subtract(82, 47).text == "82 - 47: 82 - 40 = 42, 42 - 7 = 35."
    assert steps.multiply(6, 17).text == "17 * 6: 10 * 6 = 60, 7 * 6 = 42, 60 + 40 = 100, 100 + 2 = 102."
    assert steps.divide(84, 7).text == "84 / 7: 10 * 7 = 70, 84 - 70 = 14, 2 * 7 = 14, 14 / 7 = 2, 10 + 2 = 12."
    assert steps.divide(85, 7).text == "85 / 7: 10 * 7 = 70, 85 - 70 = 15, 2 * 7 = 14, 15 - 14 = 1, 10 + 2 = 12."
    assert steps.subtract(12, 30).text.endswith("\n30 - 12: 30 - 10 = 20, 20 - 2 = 18.")
    assert (steps.divide(85, 7).value, steps.divide(85, 7).remainder, steps.subtract(12, 30).value) == (12, 1, -18)
    assert steps.percent(20, 150).text == "20 % of 150: 150 / 10 = 15, 10 * 2 = 20, 5 * 2 = 10, 20 + 10 = 30."


@pytest.mark.parametrize("a", range(1, 400, 7))
def test_steps_reach_the_result(a: int) -> None:
    for b in range(1, 100, 3):
        works = [(steps.add(a, b), a + b)]
        if a > b:
            works.append((steps.subtract(a, b), a - b))
        if b < 10 and a < 100:
            works += [(steps.multiply(a, b), a * b), (steps.divide(a * b, b), a)]
        for work, value in works:
            assert work.value == value
            verdicts = maths.check(f"{work.text}\nThe answer is {value}.", {"answer": value})
            assert all(verdicts.values()), work


def test_held_out_pairs_never_appear_in_training() -> None:
    rng = random.Random(0)
    for sample in (maths.generate(rng) for _ in range(3000)):
        if not sample.held_out:
            headers = re.findall(r"^(\d+) ([-+]) (\d+):", sample.response, re.MULTILINE)
            for a, symbol, b in headers:
                name = "sub" if symbol == "-" else "add"
                first, second = (a, b) if name == "sub" else sorted((a, b), key=int)
                assert not is_held_out(f"{name}/{first}/{second}"), sample


def test_check_rejects_wrong_answers() -> None:
    good = "47 + 38: 40 + 30 = 70, 7 + 8 = 15, 70 + 15 = 85.\nThe answer is 85."
    assert maths.check(good, {"answer": 85}) == {"answer": True, "steps": True}
    assert maths.check(good, {"answer": 84})["answer"] is False
    assert maths.check("The answer is 12 remainder 2.", {"answer": "12 remainder 1"})["answer"] is False
    assert maths.check(good.replace("= 15", "= 14"), {"answer": 85})["steps"] is False
    assert maths.check("The answer is 85.", {"answer": 85})["steps"] is False
    assert maths.check("", {}) == {"answer": False, "steps": False}
    assert maths.check("8 / 0 = 3. The answer is 3.", {"answer": 3})["steps"] is False
