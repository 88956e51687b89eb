"""A table of figures, for a screen that draws it or lines that read it out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a title; the first column says what the others are."""

    id: str
    title: str
    rows: tuple[tuple[str, ...], ...]
    head: tuple[str, ...] = ()
    note: str = ""
    """A sentence below the table that says how to read it; empty for none."""
