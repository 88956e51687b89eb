"""Strips what a prompt did not ask for: annotations, docstrings, and the imports that only they needed."""

from __future__ import annotations

import ast
import re
from functools import cache

Edit = tuple[int, int, str]
"""Replace the characters start..end of a source by a text."""


@cache
def rendered(source: str, *, typed: bool, documented: bool) -> str:
    """The source with or without annotations and docstrings. Pure text surgery: the layout stays as written."""
    source = source.strip("\n")
    if not documented:
        source = _apply(source, _docstrings(source))
    if not typed:
        source = _without_unused_imports(_apply(source, _annotations(source)))
    return source.strip("\n")


def _apply(source: str, edits: list[Edit]) -> str:
    for start, end, text in sorted(edits, reverse=True):
        source = source[:start] + text + source[end:]
    return source


def _line_starts(source: str) -> list[int]:
    """Offset of each line, so that `starts[lineno - 1] + col_offset` is an offset into an ASCII source."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _docstrings(source: str) -> list[Edit]:
    starts, lines = _line_starts(source), source.splitlines()
    edits: list[Edit] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            first, last = node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno
            if last < len(lines) and not lines[last].strip():
                last += 1  # the blank line that sets a docstring apart goes with it
            edits.append((starts[first - 1], starts[last], ""))
    return edits


def _annotations(source: str) -> list[Edit]:
    starts = _line_starts(source)

    def end(node: ast.AST) -> int:
        return starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined, no-any-return]

    tree = ast.parse(source)
    fields = {id(child) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for child in node.body}
    edits: list[Edit] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            name_end = starts[node.lineno - 1] + node.col_offset + len(node.arg)
            stop, has_default = end(node.annotation), source[end(node.annotation) :].startswith(" = ")
            edits.append((name_end, stop + 3, "=") if has_default else (name_end, stop, ""))
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            arrow = source.rindex(" -> ", 0, end(node.returns))
            edits.append((arrow, end(node.returns), ""))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and id(node) not in fields:
            edits.append((end(node.target), end(node.annotation), ""))
    return edits


def _without_unused_imports(source: str) -> str:
    kept = []
    for line in source.splitlines():
        if match := re.fullmatch(r"from (\S+) import (.+)", line):
            names = [name for name in match[2].split(", ") if len(re.findall(rf"\b{name}\b", source)) > 1]
            line = f"from {match[1]} import {', '.join(names)}" if names else ""
            if not names:
                continue
        kept.append(line)
    return "\n".join(kept)
