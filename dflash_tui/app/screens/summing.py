"""The model sums up what is to be left out, and the user sees it write. Nothing of it becomes part of the chat."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.desk.face import Summary
from dflash_tui.core.text.harmless import sanitise
from engine.commands import Ask, Command, Stop
from engine.events import EngineError, Event, Step, TurnFinished

from .once import DismissOnceScreen

INTERVAL = 0.1
SHOWN = 1200
"""How many of the summary's last characters are shown."""


class SummaryScreen(ModalScreen[Summary], DismissOnceScreen[Summary]):
    """Shows a summary while the model writes it, and gives it, or why there is none: the user may not wait."""

    DEFAULT_CSS = """
    SummaryScreen { align: center middle; }
    SummaryScreen > Vertical {
        width: 76;
        max-width: 100%;
        height: auto;
        max-height: 80%;
        padding: 0 1;
        background: $surface;
        border: round $primary;
        border-title-color: $primary;
    }
    SummaryScreen .keys { color: $verdict-pending; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Stop", show=False, priority=True)]

    def __init__(self, ask: Ask, send: Callable[[Command], None], queue: EventQueue) -> None:
        super().__init__()
        self._ask = ask
        self._send = send
        self._queue = queue
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._text = self._error = ""
        self._unwanted = False

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("…", id="summary", markup=False)
            yield Static("Esc leaves it: the oldest questions go without a summary", classes="keys")

    def on_mount(self) -> None:
        self.query_one(Vertical).border_title = "the model sums up what it will no longer read"
        self._queue.diverted = self._events.put
        self._send(self._ask)
        self.set_interval(INTERVAL, self._look)

    def action_leave(self) -> None:
        self._unwanted = True
        self._send(Stop(self._ask.turn))

    def _look(self) -> None:
        while True:
            try:
                event = self._events.get_nowait()
            except Empty:
                break
            if isinstance(event, Step):
                self._text += event.text()
            elif isinstance(event, EngineError) and not event.fatal:
                self._error = event.message
            elif isinstance(event, TurnFinished) or (isinstance(event, EngineError) and event.fatal):
                self._finish(event)
                return
        self.query_one("#summary", Static).update(sanitise(self._text[-SHOWN:]) or "…")

    def _finish(self, event: Event) -> None:
        self._queue.diverted = None
        text = event.text.strip() if isinstance(event, TurnFinished) else ""
        if isinstance(event, EngineError):
            self._queue.put(event)  # the chat has to hear that the engine has ended
        if self._unwanted or not text:
            self.dismiss(Summary(lacks="It was stopped." if self._unwanted else self._error or Summary().lacks))
        else:
            self.dismiss(Summary(text))
