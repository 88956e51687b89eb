"""A line to move along: where among the rounds of an answer the view stands."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content
from textual.message import Message

from ..slider import Track


class Scrubber(Track):
    """A track over the rounds of an answer with a knob at the one on show; a click or a drag posts ``Moved``."""

    DEFAULT_CSS = """
    Scrubber { height: 1; color: $verdict-pending; text-wrap: nowrap; text-overflow: clip; }
    """

    @dataclass
    class Moved(Message):
        step: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.step, self.count, self.typed = 0, 0, ""
        self.live = True

    def show(self, step: int, count: int, *, live: bool, typed: str = "") -> None:
        """Show round ``step`` of ``count``; ``typed`` are the digits of a round to go to, typed so far."""
        state = (step, count, live, typed)
        if state != (self.step, self.count, self.live, self.typed):
            self.step, self.count, self.live, self.typed = state
            self.refresh()

    def render(self) -> Content:
        length = max(self._length, 1)
        knob = round(self.step / max(self.count - 1, 1) * (length - 1))
        return Content.assemble(
            "├", ("━" * knob, "$primary"), ("●", "bold $primary"), "─" * (length - 1 - knob), f"┤ {self._words}"
        )

    @property
    def _words(self) -> str:
        if self.typed:
            return f"go to {self.typed}▏ Enter"
        return f"{self.step} of {max(self.count - 1, 0)}{' live' if self.live else ''}"

    @property
    def _length(self) -> int:
        return self.size.width - 3 - max(len(self._words), 16)

    @property
    def track(self) -> tuple[int, int]:
        return 1, 1 + self._length

    def dragged(self, share: float) -> None:
        if self.count:
            self.post_message(self.Moved(round(share * (self.count - 1))))
