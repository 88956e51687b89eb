"""The line under a recording: what is played, made where, how far it is, and the keys that play it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from dflash_tui.core.replay.replay_source import FASTEST
from dflash_tui.core.rounds.pace import pace_words
from dflash_tui.core.rounds.travel import Position
from dflash_tui.core.source import PlayedRecord
from dflash_tui.core.text.harmless import sanitise

KEYS, AT_END = "Space pause · , . round · + − pace", "Space again · − slower"
OWN_STACK = 2
"""How many screens are open when a replay is all that the program shows: the chat, and Textual's empty one below."""


class ReplayBar(Widget, can_focus=True):
    """The line with a recording's place and keys. It posts what the user wants and shows what came of it."""

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
        Binding("pagedown", "leap(1)", "a tenth of the recording on"),
        Binding("pageup", "leap(-1)", "a tenth of the recording back"),
        Binding("home", "first", "to the beginning of the recording"),
        Binding("end", "last", "to the end of the recording"),
    ]

    @dataclass
    class Moved(Message):
        """The user wants the recording to go on or pause, to step a round, to leap tenths of its length, or to play so
        many times as fast."""

        what: Literal["play", "step", "leap", "pace"]
        by: float = 1

    @dataclass
    class Left(Message):
        """The user wants to leave the recording."""

    def __init__(self, source: PlayedRecord | None, *, id: str) -> None:
        super().__init__(id=id)
        self.display = source is not None
        self._source = source
        self._latest: Position | None = None
        self._answers = 0
        self._shown: object = None
        self.above = False
        """Whether a chat is below, to go back to."""

    def on_mount(self) -> None:
        if self._source is not None:
            self.above = len(self.app.screen_stack) > OWN_STACK
            self.focus()

    def show(self, latest: Position | None, answers: int) -> None:
        """Draw again if anything changed: the ``latest`` round that was played, of so many ``answers``. Called with
        every frame."""
        source = self._source
        if source is None:
            return
        self._latest, self._answers = latest, answers
        state = (source.played, source.playing, source.pace, source.ended, source.length is None)
        if state != self._shown:
            self._shown = state
            self.refresh()

    def action_play(self) -> None:
        self.post_message(self.Moved("play"))

    def action_change_pace(self, factor: float) -> None:
        self.post_message(self.Moved("pace", factor))

    def action_step(self, direction: int) -> None:
        self.post_message(self.Moved("step", direction))

    def action_first(self) -> None:
        self.post_message(self.Moved("leap", -inf))

    def action_last(self) -> None:
        self.post_message(self.Moved("leap", inf))

    def action_leap(self, direction: int) -> None:
        self.post_message(self.Moved("leap", direction))

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def render(self) -> Content:
        source = self._source
        if source is None:
            return Content()
        left = f" replay of {source.name} · {self._position(source)}"
        keys = (AT_END if source.ended else KEYS) if self.has_focus else "Tab: replay keys"
        keys = "Esc back · " * self.above + keys
        while keys and len(keys) > self.size.width - len(left) - 2:
            keys = keys.rpartition(" · ")[0]  # whole words: as many as fit
        room = self.size.width - len(left) - len(keys) - 3
        origin = sanitise(source.origin)
        while origin and len(origin) + 3 > room:
            origin = origin.rpartition(" · ")[0]
        middle = f" · {origin}" if origin else ""
        mark = "■" if source.ended else "▶" if source.playing else "⏸"
        gap = " " * max(self.size.width - len(mark + left + middle + keys), 1)
        muted = "$foreground" if self.has_focus else "$verdict-pending"  # which could not be read on the focus's ground
        return Content.assemble((mark, "bold $primary"), left, (middle + gap + keys, muted))

    def _position(self, source: PlayedRecord) -> str:
        """Rounds are counted as the step view counts them: within their answer, and from 0."""
        if source.length is None:
            return "reading"
        state = "ended" if source.ended else _pace_words(source.pace) if source.playing else "paused"
        latest = self._latest
        if latest is None:
            return state
        answer = f"answer {latest.turn}, " if self._answers > 1 else ""
        return f"{answer}round {latest.step} of {len(source.steps_of_turn(latest.turn)) - 1} · {state}"


def _pace_words(pace: float) -> str:
    return "as fast as can be" if pace >= FASTEST else pace_words(pace)
