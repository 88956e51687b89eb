"""The colours of an export, from the same theme files as the screen's."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ..files.places import bundled_themes_dir
from ..text.spans import TokenStyle

DARK, LIGHT = "dflash-dark", "dflash-light"


PLAIN_COLOURS = ("background", "foreground", "surface", "panel", "primary", "error")
"""The colours of :class:`HexColours` that a theme names under ``[colors]``."""


@dataclass(frozen=True, slots=True)
class HexColours:
    """Colours as ``#RRGGBB``."""

    background: str
    foreground: str
    surface: str
    panel: str
    primary: str
    error: str
    verdicts: Mapping[str, str]
    """The colours of verdicts, ``rejected`` and ``pending`` included."""

    def of(self, style: TokenStyle) -> str:
        """The colour of a piece of the transcript."""
        match style:
            case "prompt" | "text":
                return self.foreground
            case "error":
                return self.error
            case "version":
                return self.primary
            case "thought" | "note" | "unknown" | "fold" | "output":
                return self.verdicts["pending"]
            case _:
                return self.verdicts[style.removeprefix("guess-")]


@cache
def bundled_palette(name: str) -> HexColours:
    """The palette of a theme that comes with the program."""
    theme = tomllib.loads((bundled_themes_dir() / f"{name}.toml").read_text(encoding="utf-8"))
    return HexColours(**{name: theme["colors"][name] for name in PLAIN_COLOURS}, verdicts=theme["verdict"])
