"""Python programs to edit: imports, constants and functions of random names, or a program of the domain "code"."""

from __future__ import annotations

import random
from dataclasses import dataclass

from engine.lab.demo.corpus.code.answer import write_code
from engine.lab.demo.corpus.code.request import draw_request
from engine.lab.demo.corpus.code.values import split
from engine.lab.demo.corpus.edit.content import (
    any_word,
    constant_name,
    distinct,
    function_name,
    literal,
    nonsense,
    number,
    variable_name,
)
from engine.lab.demo.corpus.wording import capitalised, pick

MODULES = split(
    "os sys re json math time random string itertools functools collections pathlib csv datetime logging "
    "textwrap copy enum heapq bisect operator decimal statistics shutil argparse"
)
OPERATORS = ("+", "-", "*", "//", "%")
COMPARED = ("<", ">", "==", "<=", ">=", "!=")

STATEMENTS = (
    "{v} = {a} {op} {n}",
    "{v} = {f}({a}, {n})",
    "{v} = {f}({a})",
    "{v} = [{b} {op} {n} for {b} in {a}]",
    "if {a} {cmp} {n}:\n    {v} = {a}",
    "if {a} is None:\n    return {l}",
    "for {b} in {a}:\n    {v}.append({b})",
    "for {b} in range({n}):\n    print({b}, {a})",
    'print("{w}", {a})',
    'print(f"{w}: {{{a}}}")',
    '{v}["{w}"] = {a}',
    "{v} = {a}.{w}({l})",
    "while {a} {cmp} {n}:\n    {a} {op}= {k}",
    "try:\n    {v} = {f}({a})\nexcept ValueError:\n    {v} = {l}",
    "{v} = {l}",
    "{v} = {a} if {a} {cmp} {n} else {l}",
    'with open("{w}.txt") as {b}:\n    {v} = {b}.read()',
    "{v} = sorted({a}, key=len)",
    "assert {a} {cmp} {n}",
    "# {w} {u} {w}",
    'if "{w}" in {a}:\n    return {v}',
    "{v} = dict({w}={n}, {u}={l})",
    "{v} += {n}",
    "return {v}",
)


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    parameters: tuple[str, ...]
    body: tuple[str, ...]
    """Lines without the function's own indentation."""

    @property
    def head(self) -> str:
        return f"def {self.name}({', '.join(self.parameters)}):"

    @property
    def text(self) -> str:
        return "\n".join([self.head, *(f"    {line}" for line in self.body)])


@dataclass(frozen=True, slots=True)
class Program:
    imports: tuple[str, ...]
    constants: tuple[tuple[str, str], ...]
    functions: tuple[Function, ...]
    call: str = ""

    @property
    def text(self) -> str:
        constants = "\n".join(f"{name} = {value}" for name, value in self.constants)
        parts = ["\n".join(self.imports), constants]
        head = "\n\n".join(part for part in parts if part)
        return "\n\n\n".join(part for part in (head, *(f.text for f in self.functions), self.call) if part)


def draw_function(rng: random.Random, name: str, others: list[str], lines: int) -> Function:
    names = distinct(rng, variable_name, rng.randint(2, 4), (name,))
    parameters = tuple(names[: rng.randint(1, min(3, len(names)))])
    body: list[str] = []
    for _ in range(lines):
        body += _statement(rng, names, others).split("\n")
    if not body[-1].startswith(("return", "print")):
        body.append(f"return {pick(rng, names)}")
    return Function(name, parameters, tuple(body))


def _statement(rng: random.Random, names: list[str], others: list[str]) -> str:
    return pick(rng, STATEMENTS).format(
        v=pick(rng, names), a=pick(rng, names), b=pick(rng, ("item", "x", "part", "each", "entry")),
        f=pick(rng, others) if others and rng.random() < 0.7 else function_name(rng), n=number(rng), l=literal(rng),
        k=rng.randint(1, 9), op=pick(rng, OPERATORS), cmp=pick(rng, COMPARED), w=any_word(rng), u=nonsense(rng),
    )  # fmt: skip


def draw_import(rng: random.Random) -> str:
    if rng.random() < 0.6:
        return f"import {pick(rng, MODULES)}"
    source = pick(rng, MODULES) if rng.random() < 0.5 else nonsense(rng)
    return f"from {source} import {any_word(rng)}"


def draw_program(rng: random.Random, functions: int = 0, imports: int = -1, constants: int = -1) -> Program:
    """A program of one to five functions; a count that is left out is drawn."""
    count = functions or rng.choices((1, 2, 3, 5), (10, 6, 3, 1))[0]
    names = distinct(rng, function_name, count)
    made = []
    for index, name in enumerate(names):
        made.append(draw_function(rng, name, names[:index], rng.randint(1, 5 if count < 3 else 3)))
    imported = imports if imports >= 0 else rng.choices((0, 1, 2, 3), (5, 3, 2, 1))[0]
    fixed = constants if constants >= 0 else rng.choices((0, 1, 2), (5, 3, 2))[0]
    call = ""
    if rng.random() < 0.5:
        last = made[-1]
        call = f"{last.name}({', '.join(literal(rng) for _ in last.parameters)})"
        call = f"print({call})" if rng.random() < 0.6 else call
    return Program(
        tuple(distinct(rng, draw_import, imported)),
        tuple((name, literal(rng)) for name in distinct(rng, constant_name, fixed)),
        tuple(made),
        call,
    )


def draw_code(rng: random.Random) -> tuple[str, str]:
    """A whole program and the name of a function in it: one of random names, or one of the domain "code"."""
    if rng.random() < 0.65:
        program = draw_program(rng)
        return program.text, pick(rng, program.functions).name
    while True:
        request = draw_request(rng)
        if (code := write_code(request, rng)).count("\n") <= 45:
            return code, request.name


def words_of(name: str) -> str:
    """The words of a function's name as a sentence: "fold_river" -> "Fold river."."""
    return capitalised(name.replace("_", " ").lower()) + "."
