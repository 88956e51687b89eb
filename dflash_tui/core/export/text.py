"""A page as text, for pipes and terminals that can only print lines."""

from __future__ import annotations

from ..text.wrapping import Document
from .document import ExportedPage
from .spans import document_spans

COLUMNS = 88
"""Cells of a line."""


def to_text(page: ExportedPage) -> str:
    """The page's words, wrapped."""
    grid = Document(COLUMNS)
    grid.append(list(document_spans(page)))
    return "\n".join(row.text.rstrip() for row in grid.rows).rstrip("\n") + "\n"
