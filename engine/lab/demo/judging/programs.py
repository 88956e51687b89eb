"""Whether an answer's program is right: it parses, defines what was asked, follows the prompt, and passes a test."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

RUNNER = Path(__file__).with_name("program_runner.py")
SECONDS = 2
"""The most seconds that a program and its test may run."""
ALLOWED_MODULES = frozenset({
    "__future__", "bisect", "collections", "contextlib", "copy", "dataclasses", "enum", "functools", "heapq",
    "itertools", "math", "operator", "random", "re", "string", "textwrap", "time", "typing",
})  # fmt: skip
"""Modules that an answer's program may import: none of them touches files, processes or the network. An answer that
imports others is not run."""

_BLOCK = re.compile(r"```python\n(.*?)\n```", re.DOTALL)


def verdicts(answer: str, right: dict[str, Any]) -> dict[str, bool]:
    """Verdicts on an answer by what ``right`` asks for. "parses": it has a Python block that compiles; "defines": the
    function or class asked for; "follows": annotations, docstring, asserts, comments, a main guard and example values
    as asked for; "passes": program and test run to their end. Never raises on account of an answer."""
    code = code_of(answer)
    tree = _parsed(code)
    definition = _definition(tree, right)
    runs = tree is not None and definition is not None and _imports(tree) <= ALLOWED_MODULES
    return {
        "parses": tree is not None,
        "defines": definition is not None,
        "follows": definition is not None and _follows(code, definition, right),
        "passes": runs and _passes(f"{code}\n\n\n{right['test']}\n"),
    }


def code_of(answer: str) -> str:
    """The first Python block of an answer, or an empty string."""
    match = _BLOCK.search(answer)
    return match[1] if match else ""


def _parsed(code: str) -> ast.Module | None:
    try:
        return ast.parse(code) if code else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _definition(tree: ast.Module | None, right: dict[str, Any]) -> ast.FunctionDef | ast.ClassDef | None:
    wanted = ast.ClassDef if right["class"] else ast.FunctionDef
    for node in tree.body if tree else []:
        if isinstance(node, wanted) and node.name == right["name"]:
            return node
    return None


def _follows(code: str, definition: ast.FunctionDef | ast.ClassDef, right: dict[str, Any]) -> bool:
    return (
        _annotated(definition) == right["typed"]
        and (ast.get_docstring(definition) is not None) == right["documented"]
        and bool(re.search(r"^ *assert ", code, re.MULTILINE)) == right["tested"]
        and bool(re.search(r"^ *# ", code, re.MULTILINE)) == right["commented"]
        and ('if __name__ == "__main__":\n' in code) == right["guarded"]
        and all(text in code for text in right["shows"])
    )


def _annotated(definition: ast.FunctionDef | ast.ClassDef) -> bool:
    functions = [node for node in ast.walk(definition) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        given += [extra for extra in (function.args.vararg, function.args.kwarg) if extra]
        if function.returns is None or any(a.annotation is None for a in given if a.arg not in ("self", "cls")):
            return False
    return True


def _imports(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


def _passes(program: str) -> bool:
    """Whether a program runs to its end in a child of the runner."""
    request = json.dumps({"seconds": SECONDS, "programs": [program]})
    command = [sys.executable, "-I", "-S", str(RUNNER)]
    try:
        done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=30 + SECONDS, check=True)
        return bool(json.loads(done.stdout)[0])
    except (subprocess.SubprocessError, json.JSONDecodeError):
        return False
