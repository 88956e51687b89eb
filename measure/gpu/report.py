"""Collects what a check on a GPU found: lines for people, the same as JSON, and whether everything held."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import torch

Case = TypeVar("Case")


@dataclass
class Report:
    """Collects lines of ``name  value``."""

    quick: bool = False
    """In small, where times mean nothing: see ``timed``."""
    ok: bool = True
    lines: list[tuple[str, str, bool]] = field(default_factory=list)

    def line(self, name: str, value: str, holds: bool = True) -> None:
        self.ok = self.ok and holds
        self.lines.append((name, value, holds))
        print(f"{'  ' if holds else 'X '}{name:<46} {value}", flush=True)

    def timed(self, name: str, value: str, holds: bool) -> None:
        """A line whose ``holds`` compares times."""
        self.line(name, value, holds or self.quick)

    def of_each(self, cases: Iterable[Case], check: Callable[[Case], None], path: Path | None) -> int:
        """Checks one case after the other, none of which finds the GPU's memory full of the one before, and writes what
        was found; returns the exit code."""
        for case in cases:
            check(case)
            gc.collect()
            torch.cuda.empty_cache()  # does nothing without a GPU
            self.write(path)
        return 0 if self.ok else 1

    def write(self, path: Path | None) -> None:
        if path is not None:
            found = [{"name": name, "value": value, "holds": holds} for name, value, holds in self.lines]
            path.write_text(json.dumps({"ok": self.ok, "lines": found}, indent=1))
