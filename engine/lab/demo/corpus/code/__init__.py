"""The domain "code": Python programs, with prompts that control name, way, hints, docstring, example and tests."""

from __future__ import annotations

import random

from ..sample import Sample
from .answer import unit_test, write_code
from .catalogue import PROGRAMS
from .checking import check, check_many, code_of
from .prompts import intro, noun_of, word_prompt
from .request import Request, draw_request

__all__ = ["PROGRAMS", "check", "check_many", "code_of", "generate", "sample_of"]

WITH_NOTE = 0.5
"""Share of answers with a sentence after the code, unless a comment in it says the same."""


def generate(rng: random.Random) -> Sample:
    """One exchange about a Python program, uniform over the programs of the catalogue."""
    return sample_of(draw_request(rng), rng)


def sample_of(request: Request, rng: random.Random, writer: random.Random | None = None) -> Sample:
    """The prompt and the answer of a request; `rng` decides the wording, and which facts a test shows unless a
    `writer` does."""
    noun = noun_of(request.program, rng)
    prompt = word_prompt(request, noun, rng)
    code = write_code(request, writer or rng)
    response = f"{intro(request, noun, rng)}\n\n```python\n{code}\n```"
    if not request.commented and rng.random() < WITH_NOTE:
        response += f"\n\n{rng.choice(request.variant.notes)}"
    facts = {
        "program": request.program.name,
        "kind": "class" if request.program.kind == "class" else "function",
        "name": request.name,
        "typed": request.typed,
        "documented": request.documented,
        "tested": request.tested,
        "commented": request.commented,
        "guarded": request.guarded,
        "shows": [request.parameter] * request.names_list + list(request.arguments) * request.gives_arguments,
        "test": unit_test(request),
    }
    return Sample("code", prompt, response, request.combination, facts)
