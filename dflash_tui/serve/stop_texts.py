"""Finds stop texts in an answer that comes piece by piece: what may be the beginning of one is held back."""

from __future__ import annotations

from collections.abc import Sequence

from dflash_tui.core.text.overlap import overlap


class StopTextFilter:
    """Passes text on up to the first stop text, which is left out."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.stop_text: str | None = None
        """The stop text that came; nothing passes after it."""

    def push(self, text: str) -> str:
        """Takes a piece of the answer; returns the text that can be shown now."""
        if not self._stops:
            return text
        held = self._held + text
        # The stop text that is whole first counts, so that it doesn't matter in which pieces a text comes.
        hits = [(start + len(stop), start, stop) for stop in self._stops if (start := held.find(stop)) >= 0]
        if hits:
            _, start, self.stop_text = min(hits)
            self._held = ""
            return held[:start]
        keep = max((overlap(held, stop) for stop in self._stops), default=0)
        cut = len(held) - keep
        self._held = held[cut:]
        return held[:cut]

    def rest(self) -> str:
        """Gives the text that was held back, at the end of an answer."""
        held, self._held = self._held, ""
        return held
