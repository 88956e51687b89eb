"""Where in a TOML file something stands, for messages that name the line. The parser itself doesn't tell."""

from __future__ import annotations

import re

_TABLE = re.compile(r"\s*\[\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+)\s*=""")


def line_of(text: str, key: str, table: str = "") -> int | None:
    """The line, from 1, on which ``key`` of ``table`` gets its value; the table's own line when the key isn't found
    there, and None when neither is. A key of the top level may itself be a table."""
    current, header = "", None
    for number, line in enumerate(text.splitlines(), 1):
        if found := _TABLE.match(line):
            current = found[1].strip("\"'")
            if current == (table or key):
                header = number
        elif current == table and (found := _KEY.match(line)) and found[1].strip("\"'") == key:
            return number
    return header


def syntax_place(message: str, text: str) -> tuple[str, int | None]:
    """``tomllib``'s complaint, such as ``Invalid value (at line 3, column 8)``, and its line in ``text``."""
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    if found is None:
        return message, None
    return message[: found.start()], int(found[1] or len(text.splitlines()))
