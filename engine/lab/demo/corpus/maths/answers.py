"""The form of a maths answer, and its checker."""

from __future__ import annotations

import re
from typing import Any

from engine.lab.demo.corpus.maths.numbers import combination
from engine.lab.demo.corpus.maths.steps import Work
from engine.lab.demo.corpus.sample import Sample

_EQUATION = re.compile(r"(\d+) ([-+*/]) (\d+) = (-?\d+)")
_FINAL = re.compile(r"[Tt]he answer is (-?\d+(?: remainder \d+)?)")


def answered(prompt: str, opening: str, works: list[Work], unit: str = "") -> Sample:
    """The sample of a problem: opening sentence (or none), one line per operation, the final answer with its unit."""
    last = works[-1]
    answer = f"{last.value} remainder {last.remainder}" if last.remainder else str(last.value)
    final = f"The answer is {answer}{' ' if unit else ''}{unit}."
    lines = [opening] if opening else []
    response = "\n".join([*lines, *(work.text for work in works), final])
    return Sample("maths", prompt, response, combination(works), {"answer": answer})


def _holds(left: str, symbol: str, right: str, result: str) -> bool:
    a, b, c = int(left), int(right), int(result)
    if symbol == "/":
        return b != 0 and a == b * c
    return c == {"+": a + b, "-": a - b, "*": a * b}[symbol]


def check(response: str, check: dict[str, Any]) -> dict[str, bool]:
    """Verdicts: "answer" (the final number is right), "steps" (there are steps, and all of them hold)."""
    final = _FINAL.findall(response)
    equations = _EQUATION.findall(response)
    return {
        "answer": bool(final) and final[-1] == str(check.get("answer")),
        "steps": bool(equations) and all(_holds(*equation) for equation in equations),
    }
