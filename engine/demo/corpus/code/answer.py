"""Renders a request as code: the stripped source, an example call and, when asked for, asserts."""

from __future__ import annotations

import random
import re
from functools import cache

from .request import Request
from .source import rendered

GAP = "\n\n\n"
"""Two blank lines between the definitions and the example, as PEP 8 has it."""
SHOWN_FACTS = 3


def write_code(request: Request, rng: random.Random) -> str:
    """The program that answers a request, without a trailing newline."""
    program, variant = request.program, request.variant
    source = rendered(variant.source, typed=request.typed, documented=request.documented)
    usage = program.usage_of(variant).format(*request.arguments, args=", ".join(request.arguments))
    parts = [source, _called(usage, program.name)]
    if request.tested:
        facts = program.facts_of(variant)
        chosen = sorted(rng.sample(range(len(facts)), min(SHOWN_FACTS, len(facts))))
        test = [program.setup_of(variant), *(f"assert {facts[i]}" for i in chosen)]
        parts[1] += "\n\n" + _called("\n".join(filter(None, test)), program.name)
    code = GAP.join(parts)
    if request.named:
        code = _rename(code, program.name, request.name)
    if request.names_list:
        code = _rename(code, program.parameter, request.parameter)
    return code


def unit_test(request: Request) -> str:
    """Statements that raise AssertionError when the requested function is wrong, to run after the code."""
    program, variant = request.program, request.variant
    lines = [program.setup_of(variant), *(f"assert {fact}" for fact in program.facts_of(variant))]
    return _called("\n".join(filter(None, lines)), request.name)


def _called(code: str, name: str) -> str:
    """Puts the name where `f` stands for it; an f-string keeps its prefix."""
    return re.sub(r"""(?<![.\w"'])f(?![\w"'])""", name, code)


def _rename(code: str, old: str, new: str) -> str:
    return _word(old).sub(new, code)


@cache
def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![.\w]){name}\b")
