"""Wishes about the program that was just written: another name, type hints, a docstring, other values, how it works."""

from __future__ import annotations

import random
from dataclasses import replace

from engine.lab.demo.corpus.code import sample_of
from engine.lab.demo.corpus.code.prompts import (
    DOCUMENTED,
    DOCUMENTED_SENTENCES,
    GUARDED,
    GUARDED_SENTENCES,
    TYPED,
    TYPED_SENTENCES,
    VALUE_SENTENCES,
)
from engine.lab.demo.corpus.code.request import Request, draw_request
from engine.lab.demo.corpus.edit.content import class_name, distinct, function_name
from engine.lab.demo.corpus.sample import Sample
from engine.lab.demo.corpus.steady import Steady
from engine.lab.demo.corpus.wording import phrase, pick

EXPLAINED = 0.12
_WHY = (
    "How does [it|this|that] work?", "Explain [it|this|the code|that][.|]", "Why does it work?", "explain it",
    "What does [it|this|the code] do?", "Can you explain [it|the code|this]?", "how does it work",
)  # fmt: skip
_NAMES = (
    "[Call|Name] it {n}[.|, please.|]", "Rename [it|the {k}] to [{n}|`{n}`][.|]", "rename it to {n}", "call it {n}",
    "The {k} should be called {n}[.|]", "Change its name to `{n}`[.|]", "[Can|Could] you [call|name] it {n}?",
)  # fmt: skip
_NOW = ("[Now |]{x}[, please|.|]", "[And |]{x}?", "the same {x}")


def generate(rng: random.Random) -> Sample:
    """A program, then a wish about it and the program again, or a question about how it works."""
    while True:
        request = draw_request(rng)
        if request.program.kind == "decorator" and request.guarded:
            continue
        writer = Steady(str(rng.random()))
        first = sample_of(request, rng, writer)
        if rng.random() < EXPLAINED:
            return _explained(rng, request, first)
        wished = _wished(rng, request)
        if wished:
            break
    wish, says, changed = wished
    second = sample_of(changed, rng, writer)
    before, after = (_code(sample) for sample in (first, second))
    if before == after:
        return generate(rng)
    old = before.split("\n")
    facts = {
        "kind": "code",
        "facts": second.check,
        "text": after,
        "changed": [line for line in after.split("\n") if line not in old],
    }
    response = f"Here it is {says}:\n\n```python\n{after}\n```"
    return Sample("follow", wish, response, f"follow/{changed.combination}/{says}", facts, _exchange(first))


def _explained(rng: random.Random, request: Request, first: Sample) -> Sample:
    note = pick(rng, request.variant.notes)
    facts = {"kind": "code", "says": note}
    return Sample("follow", phrase(rng, pick(rng, _WHY)), note, f"follow/{note}", facts, _exchange(first))


def _exchange(sample: Sample) -> tuple[tuple[str, str], ...]:
    return ((sample.prompt, sample.response),)


def _code(sample: Sample) -> str:
    return sample.response.partition("```python\n")[2].partition("\n```")[0]


def _wished(rng: random.Random, request: Request) -> tuple[str, str, Request] | None:
    """The wish, what the answer says about it, and the request that it makes of the old one."""
    kind = pick(rng, ("name", "name", "typed", "documented", "values", "guarded"))
    if kind == "name":
        draw = class_name if request.program.kind == "class" else function_name
        name = distinct(rng, draw, 1, (request.name,))[0]
        wish = phrase(rng, pick(rng, _NAMES), n=name, k=request.program.kind)
        return wish, f"as `{name}`", replace(request, name=name)
    if kind == "typed" and not request.typed:
        return _asked(rng, TYPED, TYPED_SENTENCES), "with type hints", replace(request, typed=True)
    if kind == "documented" and not request.documented:
        return _asked(rng, DOCUMENTED, DOCUMENTED_SENTENCES), "with a docstring", replace(request, documented=True)
    if kind == "guarded" and not request.guarded and request.program.kind != "decorator":
        return _asked(rng, GUARDED, GUARDED_SENTENCES), "with a main guard", replace(request, guarded=True)
    if kind == "values" and request.arguments:
        arguments = request.program.arguments(rng)
        values = " and ".join(arguments)
        wish = pick(rng, VALUE_SENTENCES).format(values=values)
        if arguments == request.arguments:
            return None
        return wish, f"with {values}", replace(request, arguments=arguments, gives_arguments=True)
    return None


def _asked(rng: random.Random, clauses: tuple[str, ...], sentences: tuple[str, ...]) -> str:
    return phrase(rng, pick(rng, _NOW), x=pick(rng, clauses)) if rng.random() < 0.5 else pick(rng, sentences)
