"""The part of the chat screen that goes through the rounds: what the user points at becomes a place to look at."""

from __future__ import annotations

from collections.abc import Callable

from textual import events, on
from textual.screen import Screen

from dflash_tui.core.conversation.slash import SlashError

from ..viewer import Viewer
from ..widgets.gauges import HistogramGauge
from ..widgets.lens_legend import lens_legend
from ..widgets.scrubber import Scrubber
from ..widgets.slider import PaceSlider
from ..widgets.step_view import StepView
from ..widgets.token_log import TokenLog


class Looking(Screen[None]):
    """Tells its viewer what was asked for, and its user why something can't be shown."""

    viewer: Viewer

    @on(HistogramGauge.Picked)
    def visit_like(self, message: HistogramGauge.Picked) -> None:
        """A round that kept as many guesses as the bar that was clicked; again, and the next such."""
        self._look(lambda: self.viewer.visit_kept(message.accepted))

    @on(TokenLog.Picked)
    def pick_token(self, message: TokenLog.Picked) -> None:
        self._look(lambda: self.viewer.pick(message.turn, message.token))

    @on(TokenLog.Released)
    def follow_again(self) -> None:
        self.viewer.go_live()

    @on(Scrubber.Moved)
    def scrub(self, message: Scrubber.Moved) -> None:
        self._look(lambda: self.viewer.visit_round(message.step))

    @on(StepView.Moved)
    def move_in_steps(self, message: StepView.Moved) -> None:
        self._look(lambda: self.viewer.move(message.move))

    @on(StepView.Numbered)
    def go_to_number(self, message: StepView.Numbered) -> None:
        self._look(lambda: self.viewer.go_to_number(message.number))

    @on(StepView.Closed)
    def close_steps(self) -> None:
        self.viewer.close()

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def keys_go_elsewhere(self) -> None:
        """The step view says which keys it takes."""
        self.viewer.show_steps()

    def _look(self, go: Callable[[], None]) -> None:
        """Go somewhere, or say why not."""
        try:
            go()
        except SlashError as error:
            self.notify(str(error), severity="warning", timeout=4)

    def show_pace(self, pace: float) -> None:
        """The pace was changed by something else than its slider."""
        self.query_one(PaceSlider).value = pace

    def show_legend(self) -> None:
        """What the colours of the transcript mean."""
        self.query_one("#ask").border_title = lens_legend(self.viewer.lenses.lens)
