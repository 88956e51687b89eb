"""How the shades of the lenses look, and the line that says what they mean."""

from __future__ import annotations

from textual.content import Content

from dflash_tui.core.rounds.lenses import LEGENDS, Lens, Shade

from .round_strip import legend

SHADE_STYLES: dict[Shade, str] = {
    "sure-1": "bold underline $foreground on $primary 33%",
    "sure-2": "italic underline $foreground on $primary 25%",
    "sure-3": "underline $foreground on $primary 17%",
    "sure-4": "italic $foreground on $primary 9%",
    "sure-5": "$foreground",
    "undrafted": "$verdict-pending",
    "even": "$foreground",
    "odd": "underline $foreground on $primary 25%",
    "fast-1": "bold underline $foreground on $verdict-corrected 33%",
    "fast-2": "underline $foreground on $verdict-corrected 24%",
    "fast-3": "$foreground on $verdict-corrected 10%",
    "fast-4": "$foreground",
    "fast-5": "italic $foreground 75%",
}
"""The stronger, the more to look at; each step has attributes of its own beside the colour."""


def lens_legend(lens: Lens) -> Content:
    """What the colours of the transcript mean through this lens."""
    if lens == "verdict":
        return legend()
    name = Content.styled(f"{lens}  ", "bold")
    return name + Content("  ").join(
        Content.styled(words, SHADE_STYLES[shade]) for shade, words in LEGENDS.get(lens, ())
    )
