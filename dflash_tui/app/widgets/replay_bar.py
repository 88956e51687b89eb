"""The line under a recording: what is played, made where, how far it is, and the keys that play it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget

from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.rounds.pace import pace_words
from dflash_tui.core.rounds.travel import Place
from dflash_tui.core.source import Recording
from dflash_tui.core.traces.replaying import FASTEST, SLOWEST

if TYPE_CHECKING:
    from ..screens.chat import ChatScreen

KEYS, AT_END = "Space , . + −", "Space again · − slower"
OWN_STACK = 2
"""Screens of the program when the replay is all it shows: Textual's own empty one is below."""


class ReplayBar(Widget, can_focus=True):
    """Shown where the source can be paused and sought; its methods do nothing elsewhere."""

    DEFAULT_CSS = """
    ReplayBar { height: 1; background: $boost; color: $foreground; padding: 0 1; text-wrap: nowrap; }
    ReplayBar:focus { background: $primary 30%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "pause the replay, or go on"),
        Binding("plus,equals_sign,up", "change_pace(2)", "replay faster"),
        Binding("minus,down", "change_pace(0.5)", "replay slower"),
        Binding("full_stop,right", "step(1)", "one round on"),
        Binding("comma,left", "step(-1)", "one round back"),
        Binding("escape", "leave", "back to the chat", show=False),
        Binding("pagedown", "leap(1)", "a tenth of the trace on"),
        Binding("pageup", "leap(-1)", "a tenth of the trace back"),
        Binding("home", "first", "to the beginning of the trace"),
        Binding("end", "last", "to the end of the trace"),
    ]

    def __init__(self, source: Recording | None, *, id: str) -> None:
        super().__init__(id=id)
        self.display = source is not None
        self._source = source
        self._shown: object = None

    @property
    def _chat(self) -> ChatScreen:
        return cast("ChatScreen", self.screen)

    def on_mount(self) -> None:
        if self._source is not None:
            self.focus()

    def show(self) -> None:
        """Draw again if anything changed. Called with every frame."""
        source = self._source
        if source is None:
            return
        state = (source.played, source.playing, source.pace, source.ended, source.length is None)
        if state != self._shown:
            self._shown = state
            self.refresh()

    def action_play(self) -> None:
        """Pause or go on: from where the user looks, and from the start again when all is told."""
        source, place = self._source, self._chat.viewer.place
        if source is None:
            return
        if place is not None:
            self.play_from(place)
        elif source.ended:
            self._go(1)
            source.set_playing(True)
        else:
            source.set_playing(not source.playing)

    def play_from(self, place: Place) -> None:
        """Take back what came after a round, and play on from there."""
        if self._source is not None:
            self._chat.viewer.go_live()
            self._source.seek_round(place.turn, place.step)
            self._source.set_playing(True)
            self._chat.pump.frame()

    def reach(self, turn: int, index: int) -> None:
        """Have a round of a turn played, if it is still to come."""
        source = self._source
        if source is not None and source.steps_of_turn(turn)[: max(index, 0) + 1].stop > source.played:
            source.seek_round(turn, index)
            self._chat.pump.frame()

    def num_rounds(self, turn: int) -> int:
        """How many rounds of a turn were recorded; 0 when nobody knows."""
        return len(self._source.steps_of_turn(turn)) if self._source is not None else 0

    def _go(self, played: int) -> None:
        if self._source is not None:
            self._source.seek(played)
            self._chat.pump.frame()

    def action_change_pace(self, factor: float) -> None:
        if self._source is not None:
            self._source.set_pace(min(max(self._source.pace * factor, SLOWEST), FASTEST))

    def action_step(self, direction: int) -> None:
        """One round back among those that were played, or one on. The replay pauses."""
        source, viewer = self._source, self._chat.viewer
        if source is None:
            return
        source.set_playing(False)
        try:
            place = viewer.travel.next_step(viewer.here(), direction)
            if direction > 0 and (viewer.place is None or place is None):
                viewer.go_live()
                self._go(source.played + 1)
            else:
                viewer.visit(place, "This is the first round.")
                self.focus()
        except SlashError as error:
            self.notify(str(error), severity="warning", timeout=4, markup=False)

    def action_first(self) -> None:
        if self._source is not None and self._source.length is not None:
            self._source.set_playing(False)
            self._chat.viewer.go_live()
            self._go(1)

    def action_last(self) -> None:
        if self._source is not None and self._source.length is not None:
            self._chat.viewer.go_live()
            self._go(self._source.length)

    def action_leap(self, direction: int) -> None:
        """A tenth of the trace on or back, and on from there."""
        source = self._source
        if source is not None and source.length is not None:
            self._chat.viewer.go_live()
            self._go(max(source.played + direction * max(source.length // 10, 1), 1))

    def action_leave(self) -> None:
        """From a replay that was opened above a chat, back to it."""
        if len(self.app.screen_stack) > OWN_STACK:
            self.app.pop_screen()

    def render(self) -> Content:
        source = self._source
        if source is None:
            return Content()
        left = f" replay of {source.name} · {self._position(source)}"
        keys = (AT_END if source.ended else KEYS) if self.has_focus else "Tab: replay keys"
        while keys and len(keys) > self.size.width - len(left) - 2:
            keys = keys.rpartition(" · ")[0]  # whole words: as many as fit
        room = self.size.width - len(left) - len(keys) - 3
        origin = source.origin
        middle = f" · {origin}" if origin and len(origin) + 3 <= room else ""
        mark = "■" if source.ended else "▶" if source.playing else "⏸"
        gap = " " * max(self.size.width - len(mark + left + middle + keys), 1)
        return Content.assemble((mark, "bold $primary"), left, (middle + gap + keys, "$verdict-pending"))

    def _position(self, source: Recording) -> str:
        """Rounds are counted as the step view counts them: within their answer, and from 0."""
        if source.length is None:
            return "reading"
        state = "ended" if source.ended else _pace_words(source.pace) if source.playing else "paused"
        travel = self._chat.viewer.travel
        latest = travel.latest()
        if latest is None:
            return state
        answer = f"answer {latest.turn}, " if len(travel.turns) > 1 else ""
        return f"{answer}round {latest.step} of {self.num_rounds(latest.turn) - 1} · {state}"


def _pace_words(pace: float) -> str:
    return "as fast as can be" if pace >= FASTEST else pace_words(pace)
