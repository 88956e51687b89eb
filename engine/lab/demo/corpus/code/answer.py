"""Renders a request as code: the stripped source, an example call and, when asked for, asserts."""

from __future__ import annotations

import random
import re
import textwrap
from functools import cache

from .request import LIST_NAMES, Request
from .source import rendered

GAP = "\n\n\n"
"""Two blank lines between the definitions and the example, as PEP 8 has it."""
SHOWN_FACTS = 3


def write_code(request: Request, rng: random.Random) -> str:
    """The program that answers a request, without a trailing newline."""
    program = request.program
    code = _definitions(request, rng) + GAP + _example(request, rng)
    if request.named:
        code = _rename(code, program.name, request.name)
    if request.names_list:
        code = _rename(code, program.parameter, request.parameter)
        code = _rename(code, program.parameter.removesuffix("s"), LIST_NAMES[request.parameter])
    return code


def _definitions(request: Request, rng: random.Random) -> str:
    """The functions and classes; a comment stands above the requested one, decorators included."""
    source = rendered(request.variant.source, typed=request.typed, documented=request.documented)
    if not request.commented:
        return source
    start = rf"^((?:@.*\n)*)(?=(?:def|class) {request.program.name}\b)"
    return re.sub(start, rf"# {rng.choice(request.variant.notes)}\n\1", source, count=1, flags=re.MULTILINE)


def _example(request: Request, rng: random.Random) -> str:
    """The call that prints a result, and asserts when asked for."""
    program, variant = request.program, request.variant
    lines = [program.usage_of(variant).format(*request.arguments, args=", ".join(request.arguments))]
    if request.commented:
        lines.insert(0, "# Example")
    if request.tested:
        facts = program.facts_of(variant)
        chosen = sorted(rng.sample(range(len(facts)), min(SHOWN_FACTS, len(facts))))
        setup = program.setup_of(variant)
        lines += ["", *([setup] if setup else []), *(f"assert {facts[i]}" for i in chosen)]
    example = _called("\n".join(lines), program.name)
    return 'if __name__ == "__main__":\n' + textwrap.indent(example, "    ") if request.guarded else example


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
