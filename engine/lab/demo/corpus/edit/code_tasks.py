"""Editing tasks on Python programs. Every answer is the whole program with one thing changed, or a part of it."""

from __future__ import annotations

import random
import re

from engine.lab.demo.corpus.edit.content import (
    File,
    any_word,
    distinct,
    file_name,
    function_name,
    literal,
    number,
    sentence,
    variable_name,
)
from engine.lab.demo.corpus.edit.programs import draw_code, draw_import, draw_program, words_of
from engine.lab.demo.corpus.edit.task import Edit, Task
from engine.lab.demo.corpus.wording import phrase, pick

_DEFINED = re.compile(r"^( *)(?:async )?def (\w+)\(.*\).*:$", re.MULTILINE)
_NAME = re.compile(r"\b[a-z]\w*_\w+\b")


def _file(rng: random.Random, text: str) -> File:
    return File(file_name(rng, "py"), "python", text)


def _renamed(text: str, old: str, new: str) -> str:
    return re.sub(rf"\b{re.escape(old)}\b", new, text)


def rename_function(rng: random.Random) -> Edit:
    code, old = draw_code(rng)
    new = distinct(rng, function_name, 1, (old,))[0]
    file = _file(rng, code)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Rename|Please rename|Can you rename] [{o}|`{o}`|the function {o}|the function `{o}`] to [{n}|`{n}`]"
                "[ in {f}|].",
                "[Call|Name] the function `{n}` instead of `{o}`.",
                "Change the name of [{o}|`{o}()`|the function {o}] to [{n}|`{n}`][.| everywhere.]",
                "The function {o} should be called {n}.", "rename {o} to {n}", "{o} -> {n}, please rename it[.|]",
                "Use {n} as the name of {o}[ in {f}|].",
            ),
        ),
        o=old, n=new, f=file.name,
    )  # fmt: skip
    intro = f"Here is `{file.name}` with `{old}` renamed to `{new}`:"
    return Edit(file, wish, intro, _renamed(code, old, new), new)


def rename_variable(rng: random.Random) -> Edit:
    while True:
        code, _ = draw_code(rng)
        names = sorted(set(_NAME.findall(code)))
        if names:
            break
    old = pick(rng, names)
    new = distinct(rng, variable_name, 1, (old,))[0]
    while new in code:
        new = distinct(rng, variable_name, 1, (old,))[0] + "_" + any_word(rng)
    file = _file(rng, code)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Replace|Substitute] [{o}|`{o}`|the name {o}] [by|with] [{n}|`{n}`][ everywhere|][ in {f}|].",
                "Rename [the variable |the name |]`{o}` to `{n}`[ in {f}|].", "replace every {o} with {n}",
                "s/{o}/{n}/", "Write {n} wherever it says {o}.", "Change all {o} to {n}[.|]",
            ),
        ),
        o=old, n=new, f=file.name,
    )  # fmt: skip
    intro = f"Here is `{file.name}` with `{new}` in place of `{old}`:"
    return Edit(file, wish, intro, _renamed(code, old, new), new)


def set_constant(rng: random.Random) -> Edit:
    program = draw_program(rng, constants=rng.randint(1, 3))
    name, old = pick(rng, program.constants)
    new = literal(rng)
    while new == old:
        new = literal(rng)
    file = _file(rng, program.text)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Set|Please set|Change] [{c}|`{c}`|the constant {c}] to [{n}|`{n}`][ in {f}|].",
                "[{c}|`{c}`] should be {n}.", "Make {c} {n}[.|]", "change {c} from {o} to {n}", "{c} = {n} please",
                "Give {c} the value {n}[ in {f}|].", "I need {c} to be {n} instead of {o}.",
            ),
        ),
        c=name, n=new, o=old, f=file.name,
    )  # fmt: skip
    result = program.text.replace(f"{name} = {old}", f"{name} = {new}", 1)
    return Edit(file, wish, f"Here is `{file.name}` with `{name}` set to `{new}`:", result, name)


def add_docstring(rng: random.Random) -> Edit:
    while True:
        code, _ = draw_code(rng)
        heads = [match for match in _DEFINED.finditer(code) if '"""' not in code[match.end() :][:120]]
        if heads:
            break
    head = pick(rng, heads)
    name = head[2]
    file = _file(rng, code)
    if rng.random() < 0.6:
        text = sentence(rng) if rng.random() < 0.5 else words_of(f"{name}_{any_word(rng)}")
        wish = phrase(
            rng,
            pick(
                rng,
                (
                    '[Add|Give me|Put] the docstring "{t}" [to|into] [{o}|`{o}`|the function {o}].',
                    '[Document {o} with|{o} needs the docstring] "{t}"', 'Add a docstring to `{o}`: "{t}"',
                ),
            ),
            o=name, t=text,
        )  # fmt: skip
    else:
        text = words_of(name)
        wish = phrase(
            rng,
            pick(
                rng,
                (
                    "[Add|Write|Please add] a docstring [to|for] [{o}|`{o}`|the function {o}][ in {f}|].",
                    "Document [{o}|`{o}`].", "add a docstring to {o}", "[{o}|`{o}`] needs a docstring.",
                ),
            ),
            o=name, f=file.name,
        )  # fmt: skip
    result = f'{code[: head.end()]}\n{head[1]}    """{text}"""{code[head.end() :]}'
    return Edit(file, wish, f"Here is `{file.name}` with a docstring in `{name}`:", result, name)


def reverse_imports(rng: random.Random) -> Edit:
    program = draw_program(rng, functions=rng.choices((1, 2), (4, 1))[0], imports=rng.randint(2, 5))
    file = _file(rng, program.text)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Reverse|Please reverse|Turn around] the [order of the imports|import order|imports][ in {f}|].",
                "[Put|Write] the imports in [reverse|the opposite] order[ in {f}|].", "reverse the import order",
                "Order the imports from last to first.",
            ),
        ),
        f=file.name,
    )  # fmt: skip
    old = "\n".join(program.imports)
    result = program.text.replace(old, "\n".join(reversed(program.imports)), 1)
    return Edit(file, wish, f"Here is `{file.name}` with its imports in reverse order:", result, program.imports[0])


def _a_line(rng: random.Random, code: str) -> str:
    """A line of the code that is there once, without its indentation."""
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    return pick(rng, [line for line in lines if lines.count(line) == 1 and code.count(line) == 1] or lines[:1])


def replace_line(rng: random.Random) -> Edit:
    code, _ = draw_code(rng)
    old = _a_line(rng, code)
    if rng.random() < 0.5 and re.search(r"\d", old):
        new = re.sub(r"\d+", lambda _: str(rng.randint(2, 500)), old, count=1)
    else:
        head = re.match(r"(\w+) [+*-]?= ", old)
        new = f"{head[1]} = {literal(rng)}" if head else f"{old}  # {any_word(rng)} {any_word(rng)}"
    file = _file(rng, code)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Replace|Please replace] [the line |]`{o}` [by|with] `{n}`[ in {f}|].",
                "Change [the line |]`{o}` to `{n}`.",
                "[Repeat|Show] the code[ again|], but with `{n}` instead of `{o}`.",
                "Write `{n}` instead of `{o}`[ in {f}|].",
            ),
        ),
        o=old, n=new, f=file.name,
    )  # fmt: skip
    return Edit(file, wish, f"Here is `{file.name}` with that line changed:", code.replace(old, new, 1), new)


def delete_line(rng: random.Random) -> Edit:
    code, _ = draw_code(rng)
    line = _a_line(rng, code)
    file = _file(rng, code)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Remove|Delete|Take out] [the line |]`{o}`[ from {f}|].", "delete the line `{o}`",
                "Drop `{o}`[.| please.]",
            ),
        ),
        o=line, f=file.name,
    )  # fmt: skip
    kept = code.splitlines()
    kept.pop(next(index for index, text in enumerate(kept) if text.strip() == line))
    return Edit(file, wish, f"Here is `{file.name}` without that line:", "\n".join(kept).strip("\n"), line)


def add_line(rng: random.Random) -> Edit:
    code, name = draw_code(rng)
    file = _file(rng, code)
    if rng.random() < 0.5:
        line = draw_import(rng)
        while line in code:
            line = draw_import(rng)
        wish = pick(rng, ("[Add|Put|Insert] `{l}` at the [top|beginning|start][ of {f}|].", "add {l} at the top"))
        result = f"{line}\n{code}"
    else:
        line = f"print({name}({literal(rng)}))"
        wish = pick(rng, ("[Add|Append|Put] `{l}` at the [end|bottom][ of {f}|].", "append {l} at the end"))
        result = f"{code}\n{line}"
    return Edit(file, phrase(rng, wish, l=line, f=file.name), f"Here is `{file.name}` with that line:", result, line)


def repeat(rng: random.Random) -> Edit:
    code, name = draw_code(rng)
    file = _file(rng, code)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Repeat|Show|Print|Copy|Quote] [the file|{f}|the code|the program][ as it is| unchanged| again|].",
                "[Show|Give] me [{f}|the whole file|the code][ again|].", "repeat the code", "What is in {f}?",
                "Write {f} out[ without changes|].",
            ),
        ),
        f=file.name,
    )  # fmt: skip
    return Edit(file, wish, f"Here is `{file.name}`:", code, name)


def extract_function(rng: random.Random) -> Edit:
    program = draw_program(rng, functions=rng.choices((2, 3), (3, 1))[0])
    chosen = pick(rng, program.functions)
    file = _file(rng, program.text)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Show|Give] me [only |just |]the function [{o}|`{o}`][ of {f}| from {f}|].", "show only {o}",
                "[Quote|Extract|Print|Copy] [{o}|`{o}`|the function {o}][ from {f}|].", "What does `{o}` look like?",
            ),
        ),
        o=chosen.name, f=file.name,
    )  # fmt: skip
    return Edit(file, wish, f"This is `{chosen.name}`:", chosen.text, chosen.name)


def delete_function(rng: random.Random) -> Edit:
    program = draw_program(rng, functions=rng.choices((2, 3), (3, 1))[0])
    chosen = pick(rng, program.functions)
    file = _file(rng, program.text)
    wish = phrase(
        rng,
        pick(rng, ("[Remove|Delete|Drop] the function [{o}|`{o}`][ from {f}|].", "delete {o}", "I don't need `{o}`.")),
        o=chosen.name, f=file.name,
    )  # fmt: skip
    result = program.text.replace(f"\n\n\n{chosen.text}", "", 1).replace(f"{chosen.text}\n\n\n", "", 1)
    return Edit(file, wish, f"Here is `{file.name}` without `{chosen.name}`:", result, chosen.name)


def list_functions(rng: random.Random) -> Edit:
    program = draw_program(rng, functions=rng.randint(2, 4))
    file = _file(rng, program.text)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Which|What] functions [are there|are in {f}|does {f} have]?", "List the functions[ of {f}| in {f}|].",
                "[Name|Give me] [the names of |]all functions[ in {f}|].",
            ),
        ),
        f=file.name,
    )  # fmt: skip
    names = "\n".join(f"- `{function.name}`" for function in program.functions)
    return Edit(file, wish, f"`{file.name}` has these functions:", names, program.functions[0].name, fenced=False)


_SLIPS = {
    "return": ("retrun", "retun", "reutrn"), "print": ("pritn", "prnit", "prin"), "import": ("improt", "imprt"),
    "def": ("dfe", "deff"), "for": ("fro", "forr"), "while": ("whlie", "wihle"), "range": ("rnage", "rang"),
    "append": ("apend", "appned"), "None": ("Nnoe", "Noen"), "else": ("esle",),
}  # fmt: skip


def fix_slip(rng: random.Random) -> Edit:
    """A keyword is misspelt, or the colon behind a head is missing."""
    while True:
        code, name = draw_code(rng)
        if '"""' in code:
            continue  # a misspelt word of a docstring could be meant
        words = [match for match in re.finditer(r"\b\w+\b", code) if match[0] in _SLIPS]
        colons = list(re.finditer(r":$", code, re.MULTILINE))
        if words and colons:
            break
    if rng.random() < 0.7:
        match = pick(rng, words)
        wrong = pick(rng, _SLIPS[match[0]])
        broken = code[: match.start()] + wrong + code[match.end() :]
    else:
        match = pick(rng, colons)
        broken = code[: match.start()] + code[match.end() :]
    file = _file(rng, broken)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Fix|Correct|Please fix] the [typo|mistake|syntax error|error][ in {f}|].", "fix the typo",
                "There is a [typo|mistake] in [{f}|this code]. [Fix it.|Correct it.]", "[Repair|Fix] [{f}|this][.|]",
                "[It|{f}] does not run: there is a typo.",
            ),
        ),
        f=file.name,
    )  # fmt: skip
    return Edit(file, wish, f"Here is `{file.name}` without the mistake:", code, name)


def change_number(rng: random.Random) -> Edit:
    """One number of the code, given by its line's variable."""
    while True:
        program = draw_program(rng)
        places = re.findall(r"^ +(\w+) = (\d+)$", program.text, re.MULTILINE)
        if places:
            break
    name, old = pick(rng, places)
    new = number(rng)
    file = _file(rng, program.text)
    wish = phrase(
        rng, pick(rng, ("[Change|Set] {c} from {o} to {n}[ in {f}|].", "{c} should be {n}, not {o}.")),
        c=name, o=old, n=new, f=file.name,
    )  # fmt: skip
    result = program.text.replace(f" {name} = {old}\n", f" {name} = {new}\n", 1)
    if result == program.text:
        return change_number(rng)
    return Edit(file, wish, f"Here is `{file.name}` with `{name} = {new}`:", result, name + new)


CODE_TASKS: dict[str, tuple[Task, int]] = {
    "rename_function": (rename_function, 12),
    "rename_variable": (rename_variable, 7),
    "set_constant": (set_constant, 7),
    "change_number": (change_number, 3),
    "add_docstring": (add_docstring, 7),
    "reverse_imports": (reverse_imports, 6),
    "replace_line": (replace_line, 8),
    "delete_line": (delete_line, 4),
    "add_line": (add_line, 4),
    "repeat": (repeat, 6),
    "extract_function": (extract_function, 5),
    "delete_function": (delete_function, 4),
    "list_functions": (list_functions, 2),
    "fix_slip": (fix_slip, 6),
}
"""By name, with the weight in the draw."""
