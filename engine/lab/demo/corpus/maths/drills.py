"""Bare arithmetic as people type it: "what is 23 + 48?", "17*6", "take 12 from 40"."""

from __future__ import annotations

import random

from engine.lab.demo.corpus.maths.answers import answered
from engine.lab.demo.corpus.maths.numbers import PLANS
from engine.lab.demo.corpus.sample import Sample
from engine.lab.demo.corpus.wording import phrase, pick

_QUESTIONS = (
    "{e}", "{e}", "{e} = ?", "{e} =", "{e}?", "What is {e}?", "what is {e}", "What's {e}?", "How much is {e}?",
    "[Calculate|Compute|Solve|Work out|Evaluate] {e}[.|]", "Can you [calculate|work out|solve|compute] {e}?",
    "Tell me [what {e} is|the result of {e}].", "I need [the result of|to know] {e}.", "Do you know {e}?",
    "[Quick question|Quick one|Maths question|Math]: {e}", "Could you tell me what {e} is?", "{e}, what is [it|that]?",
    "[Show|Explain] [how to compute|how to work out|the steps for] {e}.", "What do you get for {e}?",
    "What does {e} [equal|make|come to]?", "Help me with {e}", "and {e}?", "[Now|Next] {e}", "Find {e}.",
)  # fmt: skip

_TIMES = (
    "{a} * {b}", "{a} * {b}", "{a}*{b}", "{a} x {b}", "{a}x{b}", "{a} times {b}", "{b} * {a}", "{b}*{a}",
    "{b} times {a}",
    "{b}x{a}", "{a} X {b}", "{a} multiplied by {b}",
)  # fmt: skip
_EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "add": ("{a} + {b}", "{a} + {b}", "{a}+{b}", "{a} plus {b}"),
    "subtract": ("{a} - {b}", "{a} - {b}", "{a}-{b}", "{a} minus {b}"),
    "multiply": _TIMES,
    "table": _TIMES,
    "product": _TIMES,
    "square": ("{a} squared", "{a}^2", "{a} * {a}", "the square of {a}", "{a} times {a}"),
    "divide": ("{a} / {b}", "{a} / {b}", "{a}/{b}", "{a} divided by {b}"),
    "negative": ("{a} - {b}", "{a}-{b}", "{a} minus {b}"),
    "remainder": ("{a} / {b}", "{a}/{b}", "{a} divided by {b}"),
    "percent": ("{a} % of {b}", "{a}% of {b}", "{a} percent of {b}"),
    "add_subtract": ("{a} + {b} - {c}", "{a}+{b}-{c}", "{a} plus {b} minus {c}"),
    "subtract_add": ("{a} - {b} + {c}", "{a}-{b}+{c}", "{a} minus {b} plus {c}"),
    "add_add": ("{a} + {b} + {c}", "{a}+{b}+{c}", "{a} plus {b} plus {c}"),
    "multiply_add": ("{a} * {b} + {c}", "{a}*{b}+{c}", "{a} times {b} plus {c}", "{c} + {a} * {b}"),
    "multiply_subtract": ("{a} * {b} - {c}", "{a}*{b}-{c}", "{a} times {b} minus {c}"),
    "add_multiply": ("({a} + {b}) * {c}", "({a}+{b})*{c}", "{c} * ({a} + {b})"),
    "subtract_divide": ("({a} - {b}) / {c}", "({a}-{b})/{c}"),
    "add_divide": ("({a} + {b}) / {c}", "({a}+{b})/{c}"),
}

_SPOKEN: dict[str, tuple[str, ...]] = {
    "add": (
        "[Add|Please add|Can you add] {a} and {b}[.|]", "[What is the|Find the|the] sum of {a} and {b}[?|]",
        "What is {b} more than {a}?", "Increase {a} by {b}.", "[Put|Add] {a} and {b} together.",
    ),
    "subtract": (
        "[Subtract|Take|Please subtract] {b} from {a}[.|]", "What is {b} less than {a}?",
        "[What is the|Find the|the] difference between {a} and {b}[?|]", "Decrease {a} by {b}.",
        "How much is left when I take {b} from {a}?",
    ),
    "multiply": (
        "[Multiply|Please multiply] {a} by {b}[.|]", "[What is the|Find the|the] product of {a} and {b}[?|]",
        "What are {b} times {a}?", "What is {b} lots of {a}?",
    ),
    "product": (
        "[Multiply|Please multiply|multiply] {a} [by|with|and] {b}[.|]", "[What is the|the] product of {a} and {b}[?|]",
        "Can you multiply {a} [by|with] {b}?", "[whats|what's|wat is] {a}*{b}", "[whats|what is] {a} times {b}",
    ),
    "divide": (
        "[Divide|Please divide] {a} by {b}[.|]", "How many times does {b} go into {a}?",
        "How often does {b} fit into {a}?", "Split {a} into {b} equal parts[.|. How big is one part?]",
    ),
    "percent": ("[Find|Work out|Take|Calculate] {a} percent of {b}[.|]", "How much is {a} % of {b}?"),
    "discount": ("[Take|Subtract] {a} % off {b}[.|]", "What is {b} minus {a} %?", "Reduce {b} by {a} percent."),
    "mean": (
        "[What is the|Find the|the] [average|mean] of {a} and {b}[?|]", "Which number is halfway between {a} and {b}?",
    ),
}  # fmt: skip

_FORMS: tuple[str, ...] = (
    *("add", "subtract", "multiply", "divide") * 4,
    *("product", "product", "product", "product", "square", "table"),
    *("negative", "remainder", "percent", "discount", "mean", "add_subtract", "subtract_add", "add_add"),
    *("multiply_add", "multiply_subtract", "add_multiply", "subtract_divide", "add_divide"),
)


def generate(rng: random.Random) -> Sample:
    """One drill, worked out without further words."""
    form = pick(rng, _FORMS)
    numbers = PLANS[form].draw(rng)
    slots = dict(zip("abc", numbers, strict=False))
    spoken = _SPOKEN.get(form, ())
    if spoken and (form not in _EXPRESSIONS or rng.random() < 0.3):
        prompt = phrase(rng, pick(rng, spoken), **slots)
    else:
        prompt = phrase(rng, pick(rng, _QUESTIONS), e=pick(rng, _EXPRESSIONS[form]).format(**slots))
    return answered(prompt, "", PLANS[form].solve(numbers))
