"""Chooses a bundled trace to replay."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from textual.content import Content

from dflash_tui.core.traces.bundled import bundled_traces

from .picker import PickerScreen


class TracePicker(PickerScreen[Path]):
    """The file of a trace, or None."""

    HEAD = "recorded runs · a file of your own: /replay FILE"

    def find(self, words: str) -> Iterable[Path]:
        return [path for name, path in bundled_traces().items() if words.lower() in name]

    def describe(self, entry: Path) -> Content:
        size = f"{entry.stat().st_size / 1000:.1f} KB"
        return Content.assemble(entry.stem, (f"  {size}", "$verdict-pending"))
