"""A page as text, for pipes and terminals that can only print lines."""

from __future__ import annotations

from ..text.wrapping import Document
from .document import ExportedPage
from .spans import document_spans

COLUMNS, FEWEST = 88, 20
"""Cells of a line, and of the narrowest."""


def to_text(page: ExportedPage, room: int = COLUMNS) -> str:
    """The page's words, wrapped. ``room``: the cells of a terminal that shows them."""
    grid = Document(min(max(room, FEWEST), COLUMNS))
    grid.append(list(document_spans(page)))
    return "\n".join(row.text.rstrip() for row in grid.rows).rstrip("\n") + "\n"
