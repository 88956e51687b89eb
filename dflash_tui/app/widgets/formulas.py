"""Formulas of LaTeX in Markdown: shown as they are written. To Markdown their signs would be its own."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

_BODY = r"(?:(?!\n\n|{1}|(?<!\\){0}).)++"
"""Up to where it closes, or another of its kind opens: many that never close take no longer than they are. Behind a
line break, which LaTeX writes as two backslashes, a bracket opens nothing."""
_MARKS = ((r"\\\(", r"\\\)"), (r"\\\[", r"\\\]"), (r"\$\$", r"\$\$"))
_INLINE, _BRACKETS, _DOLLARS = (begin + _BODY.format(begin, end) + end for begin, end in _MARKS)
_FORMULA = re.compile(rf"{_INLINE}|{_BRACKETS}|{_DOLLARS}|\$(?![\s$])[^$\n]*(?<!\s)\$(?!\d)", re.DOTALL)
_DISPLAYED = re.compile(rf"(?:{_BRACKETS}|{_DOLLARS})[.,;]?[ \t]*$", re.DOTALL | re.MULTILINE)
"""One on lines of its own, where a line's first sign would begin a list."""


def parser() -> MarkdownIt:
    """Textual's own parser, and these two rules."""
    made = MarkdownIt("gfm-like")
    made.inline.ruler.before("escape", "formula", _inline)
    breaks = ["paragraph", "reference", "blockquote", "list"]
    made.block.ruler.before("fence", "formula", _block, {"alt": breaks})
    return made


def _inline(state: StateInline, silent: bool) -> bool:
    match = _FORMULA.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        for index, line in enumerate(match[0].split("\n")):
            if index:
                state.push("hardbreak", "br", 0)
            state.pending += line.strip()
    state.pos = match.end()
    return True


def _block(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    start = state.bMarks[first] + state.tShift[first]
    match = _DISPLAYED.match(state.src, start, state.eMarks[end - 1])
    if match is None:
        return False
    if not silent:
        state.line = first + match[0].count("\n") + 1
        state.push("paragraph_open", "p", 1).map = [first, state.line]
        inline = state.push("inline", "", 0)
        inline.content, inline.map, inline.children = match[0].strip(), [first, state.line], []
        state.push("paragraph_close", "p", -1)
    return True
