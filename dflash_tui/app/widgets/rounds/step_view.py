"""The step view: one round as a table, a scrubber under it, and the keys that move along the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message

from .large_round import HallRound
from .scrubber import Scrubber
from .step_table import Scene, StepTable

Move = Literal[
    "first", "live", "token-back", "token-forward", "phase-back", "phase-forward", "slower", "faster"
]  # fmt: skip
MAX_DIGITS = 6


class StepView(Vertical, can_focus=True):
    """Shows the round it is given, and posts what the user wants to see; it knows no other rounds itself."""

    DEFAULT_CSS = """
    StepView {
        height: 14;
        padding: 0 1;
        border-top: solid $foreground 25%;
        &:focus-within { border-top: solid $primary; }
    }
    StepView > StepTable, StepView > HallRound { height: 1fr; }
    StepView > HallRound, StepView.-hall > StepTable { display: none; }
    StepView.-hall > HallRound { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move('token-back')", "Token before", show=False),
        Binding("right", "move('token-forward')", "Next token", show=False),
        Binding("pagedown", "move('phase-forward')", "Next phase", show=False),
        Binding("pageup", "move('phase-back')", "Phase before", show=False),
        Binding("plus,equals_sign", "move('faster')", "Faster", show=False),
        Binding("minus", "move('slower')", "Slower", show=False),
        Binding("home", "move('first')", "First round", show=False),
        Binding("end", "move('live')", "Live", show=False),
        Binding("enter", "enter", "Go to the round typed", show=False),
        Binding("backspace", "erase", "Take a digit back", show=False),
        Binding("escape", "close", "Close", show=False),
    ]

    @dataclass
    class Moved(Message):
        """The user wants to see another place."""

        move: Move

    @dataclass
    class Numbered(Message):
        """The user typed a number: a round, or a guess where one was asked for."""

        number: int

    @dataclass
    class Closed(Message):
        """The user wants the step view closed."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.longest_number = MAX_DIGITS
        """How many digits a round's number can have: one with so many needs no Enter."""
        self.typed = ""
        self._shown: tuple[int, int, bool] = (0, 0, True)

    def compose(self) -> ComposeResult:
        yield StepTable(id="step-table")
        yield HallRound(id="step-hall")
        yield Scrubber(id="scrubber")

    def show(self, scene: Scene | None, step: int, count: int, *, live: bool) -> None:
        self._shown = (step, count, live)
        self.query_one(HallRound if self.has_class("-hall") else StepTable).show(scene)
        self._show_scrubber()

    def _show_scrubber(self) -> None:
        step, count, live = self._shown
        self.query_one(Scrubber).show(step, count, live=live, typed=self.typed)

    def action_move(self, move: Move) -> None:
        self.post_message(self.Moved(move))

    def action_close(self) -> None:
        if self.typed:
            self._type("")
        else:
            self.post_message(self.Closed())

    def action_enter(self) -> None:
        number, self.typed = self.typed, ""
        self._show_scrubber()
        if number:
            self.post_message(self.Numbered(int(number)))

    def action_erase(self) -> None:
        self._type(self.typed[:-1])

    @staticmethod
    def types(character: str | None) -> bool:
        """Whether this character is part of a round's number."""
        return character is not None and character in "0123456789"

    def on_key(self, event: events.Key) -> None:
        if event.character is None or not self.types(event.character):
            return
        event.stop()
        self._type((self.typed + event.character)[:MAX_DIGITS])
        if len(self.typed) >= self.longest_number:
            self.action_enter()

    def _type(self, text: str) -> None:
        self.typed = text
        self._show_scrubber()

    def on_click(self) -> None:
        self.focus()
