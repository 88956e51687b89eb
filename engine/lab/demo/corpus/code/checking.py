"""Judges a model's answer: does it parse, define what was asked, pass the program's unit test, follow the controls."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from .values import split

RUNNER = Path(__file__).with_name("runner.py")
SECONDS_PER_ANSWER = 2
VERDICTS = ("parses", "defines", "follows", "passes")
ALLOWED_MODULES = frozenset(
    split(
        "__future__ bisect collections contextlib copy dataclasses enum functools heapq itertools math operator random "
        "re string textwrap time typing"
    )
)
"""Nothing here touches files, processes or the network: an answer that imports more is not run."""

_BLOCK = re.compile(r"```python\n(.*?)\n```", re.DOTALL)


def check(response: str, check: dict[str, Any]) -> dict[str, bool]:
    """The verdicts on one answer, see `check_many`."""
    return check_many([response], [check])[0]


def check_many(responses: list[str], checks: list[dict[str, Any]]) -> list[dict[str, bool]]:
    """The verdicts on many answers, at the cost of one subprocess. Never raises on account of an answer.

    Args:
        responses: whole answers, code fence included.
        checks: the `check` of each prompt's sample.

    Returns:
        Per answer: "parses" (it has a Python block that compiles), "defines" (the requested name, of the requested
        kind), "follows" (the controls of the prompt: annotations, docstring, asserts, comments, main guard,
        example values) and "passes"
        (the code and then the program's unit test run without an exception within the time limit).
    """
    if len(responses) != len(checks):
        raise ValueError(f"{len(responses)} answers but {len(checks)} checks: give one check per answer")
    verdicts, jobs = [], []
    for response, facts in zip(responses, checks, strict=True):
        code = code_of(response)
        tree = _parsed(code)
        definition = _definition(tree, facts)
        verdicts.append(
            {
                "parses": tree is not None,
                "defines": definition is not None,
                "follows": definition is not None and _follows(code, definition, facts),
            }
        )
        runs = tree is not None and definition is not None and _imports(tree) <= ALLOWED_MODULES
        jobs.append(f"{code}\n\n\n{facts['test']}\n" if runs else "")
    for verdict, passed in zip(verdicts, _run(jobs), strict=True):
        verdict["passes"] = passed
    return verdicts


def code_of(response: str) -> str:
    """The first Python block of an answer, or an empty string."""
    found = _BLOCK.search(response)
    return found[1] if found else ""


def _parsed(code: str) -> ast.Module | None:
    try:
        return ast.parse(code) if code else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _definition(tree: ast.Module | None, facts: dict[str, Any]) -> ast.FunctionDef | ast.ClassDef | None:
    wanted = ast.ClassDef if facts["kind"] == "class" else ast.FunctionDef
    for node in tree.body if tree else []:
        if isinstance(node, wanted) and node.name == facts["name"]:
            return node
    return None


def _follows(code: str, definition: ast.FunctionDef | ast.ClassDef, facts: dict[str, Any]) -> bool:
    return (
        _annotated(definition) == facts["typed"]
        and (ast.get_docstring(definition) is not None) == facts["documented"]
        and bool(re.search(r"^ *assert ", code, re.MULTILINE)) == facts["tested"]
        and bool(re.search(r"^ *# ", code, re.MULTILINE)) == facts["commented"]
        and ('if __name__ == "__main__":\n' in code) == facts["guarded"]
        and all(text in code for text in facts["shows"])
    )


def _annotated(definition: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether every function has its parameters and its result annotated."""
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


def _run(jobs: list[str]) -> list[bool]:
    """Which of the programs run to their end; an empty one does not. One child of the runner for each."""
    request = json.dumps({"seconds": SECONDS_PER_ANSWER, "programs": jobs})
    command = [sys.executable, "-I", "-S", str(RUNNER)]
    limit = 30 + (SECONDS_PER_ANSWER + 1) * len(jobs)
    try:
        done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=limit, check=True)
        return [bool(passed) for passed in json.loads(done.stdout)]
    except (subprocess.SubprocessError, json.JSONDecodeError):
        return [False] * len(jobs)
