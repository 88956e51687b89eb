"""The lens that the transcript is seen through."""

from __future__ import annotations

from collections.abc import Callable

from dflash_tui.core.desk.desk import Desk
from dflash_tui.core.rounds.lenses import Lens, LensReading, Shade, next_lens
from dflash_tui.core.rounds.travel import Traveller
from dflash_tui.core.source import Feature

NEEDS: dict[Lens, Feature] = {
    "confidence": "draft_probabilities",
    "verdict": "verdicts",
}
"""What a source has to tell for a lens."""


class LensView:
    """Keeps the lens, and gives the transcript the shade of every token it draws."""

    def __init__(self, desk: Desk, travel: Traveller, painted: Callable[[], None]) -> None:
        """``painted`` is called when the lens changes, to have the transcript coloured anew."""
        self.lens: Lens = "verdict"
        self._desk, self._travel, self._painted = desk, travel, painted
        self._readings: dict[int, LensReading] = {}

    def choose(self, lens: Lens) -> None:
        """Colour the transcript by something else. ``SlashError`` for what the source doesn't tell."""
        if lens in NEEDS:
            self._desk.require(NEEDS[lens])
        self.lens = lens
        self.forget()
        self._painted()

    def next(self) -> Lens:
        """The lens behind this one through which there is something to see."""
        can, following = self._desk.source.capabilities.can, next_lens(self.lens)
        while following in NEEDS and not can(NEEDS[following]):
            following = next_lens(following)
        return following

    def forget(self) -> None:
        """Forget the shades that were worked out: the turns of the chat have changed."""
        self._readings.clear()

    def shade(self, turn: int, token: int) -> Shade | None:
        """The shade of a token of a turn, both counted from 0, through the lens. None where its round is not known."""
        if turn not in self._readings:
            rounds = self._travel.rounds(turn)
            if rounds is None:
                return None
            self._readings[turn] = LensReading(self.lens, rounds)
        return self._readings[turn].shade(token)
