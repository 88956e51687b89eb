"""The lens that the transcript is seen through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_tui.core.race.race import kind_of
from dflash_tui.core.rounds.lenses import Lens, Reading, Shade, next_lens
from dflash_tui.core.rounds.travel import Traveller
from dflash_tui.core.source import Feature
from engine.events import Source

from .widgets.token_log import TokenLog

if TYPE_CHECKING:
    from .screens.chat import ChatScreen


NEEDS: dict[Lens, Feature] = {
    "confidence": "draft_probabilities",
    "source": "draft_probabilities",
    "verdict": "verdicts",
}
"""What a source has to tell for a lens: who tells how sure the drafter was also tells who guessed."""


class LensView:
    """Keeps the lens, and gives the transcript the shade of every token it draws."""

    def __init__(self, screen: ChatScreen, travel: Traveller) -> None:
        self.lens: Lens = "verdict"
        self._screen = screen
        self._travel = travel
        self._readings: dict[int, Reading] = {}

    def choose(self, lens: Lens) -> None:
        """Colour the transcript by something else. ``SlashError`` for what the source doesn't tell."""
        if lens in NEEDS:
            self._screen.talk.require(NEEDS[lens])
        self._screen.talk.show_tokens()  # a rendered answer has no tokens to colour
        self.lens = lens
        self.forget()
        self._screen.query_one(TokenLog).paint(None if lens == "verdict" else self._shade)
        self._screen.show_legend()

    def next(self) -> Lens:
        """The lens behind this one through which there is something to see."""
        can, following = self._screen.source.capabilities.can, next_lens(self.lens)
        while following in NEEDS and not can(NEEDS[following]):
            following = next_lens(following)
        return following

    @property
    def guessers(self) -> set[Source] | None:
        """Who may guess with what is loaded and set, or has in this conversation; None before that is known."""
        screen, guessers = self._screen, {each for turn in self._travel.turns for each in turn.history.guessers}
        if (ready := screen.chat.reducer.ready) is None:
            return None
        if ready.drafter is not None and screen.chat.settings.uses_drafter:
            guessers.add("mtp" if kind_of(ready.drafter) == "mtp" else "dflash")
        if screen.chat.settings.looks_up and screen.source.capabilities.can("draft_by"):
            guessers.add("lookup")
        return guessers

    def forget(self) -> None:
        """The turns of the chat have changed."""
        self._readings.clear()

    def _shade(self, turn: int, token: int) -> Shade | None:
        if turn not in self._readings:
            history = self._travel.history(turn)
            if history is None:
                return None
            self._readings[turn] = Reading(self.lens, history)
        return self._readings[turn].shade(token)
