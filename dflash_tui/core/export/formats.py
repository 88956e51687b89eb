"""The formats of an export, by the name that a user types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from .document import ExportedPage

Format = Literal["html", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)


def render(document: ExportedPage, wanted: Format) -> str:
    """The whole file as text, to be written as UTF-8. A format is imported when it is asked for."""
    return _writer(wanted)(document)


def _writer(wanted: Format) -> Callable[[ExportedPage], str]:
    match wanted:
        case "html":
            from .html import to_html

            return to_html
        case "json":
            from .json_export import to_json

            return to_json
