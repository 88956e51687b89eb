"""Another model in the same chat: the one before is let go first, and comes back when the new one can't be had."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from dflash_tui.core.conversation.models import BEFORE, LEAVE_SECONDS, Choice, Choices
from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.failures import Failure
from dflash_tui.core.source import Emit, Happening, SourceFactory
from engine.commands import Close, Stop
from engine.events import EngineError, EngineReady

from .widgets.loading import LoadPanel
from .widgets.prompt import PLACEHOLDER, Prompt
from .widgets.status import Header

if TYPE_CHECKING:
    from .screens.chat import ChatScreen


class Gate:
    """Lets a source speak until it is shut: what it says later belongs to nobody."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._open = True

    def put(self, happening: Happening) -> None:
        if self._open:
            self._emit(happening)

    def shut(self) -> None:
        self._open = False


class Switching:
    """Which model answers, and going to another."""

    def __init__(self, screen: ChatScreen, factory: SourceFactory) -> None:
        self._screen = screen
        self._choices = Choices(screen.begin.models, factory)
        self._wanted: Choice | None = None
        """On its way."""
        self._gate = Gate(screen.queue.put)
        self.source = factory(self._gate.put)

    def switch(self, name: str, drafter: str = "") -> None:
        """Have the model called ``name`` answer, or the present one with another drafter. Raises ``SlashError`` while
        an answer runs, and for what can't be a model."""
        if self._wanted is not None:
            raise SlashError("A model is being loaded. When it answers, another can be chosen.")
        if self._screen.chat.busy:
            raise SlashError("An answer is on its way. Esc stops it first.")
        try:
            self._begin(self._choices.choose(name, drafter, self.source.capabilities.models))
        except Failure as failure:
            raise SlashError(f"{failure} {failure.hint}") from None

    def _begin(self, choice: Choice) -> None:
        screen = self._screen
        self._wanted = choice
        self._choices.leave(screen.chat.reducer)
        screen.chat.reducer.load_anew()
        screen.drawing.settled = False
        panel = screen.query_one(LoadPanel)
        panel.remove_class("-error")
        panel.show_progress([], "letting the model before go")
        panel.display = True
        screen.query_one(Header).show(None)
        screen.drawing.draw_status()
        screen.run_worker(self._exchange(choice), name="switch")

    async def _exchange(self, choice: Choice) -> None:
        screen, old = self._screen, self.source
        self._gate.shut()
        old.send(Stop())
        old.send(Close())
        await asyncio.to_thread(_let_go, old.join)
        self._gate = Gate(screen.queue.put)
        self.source = choice.factory(self._gate.put)
        screen.query_one(LoadPanel).show_progress([], screen.beginning)
        prompt = screen.query_one(Prompt)
        prompt.placeholder = screen.said(self.source.capabilities.placeholder or PLACEHOLDER)
        self.source.start()

    def become_ready(self, ready: EngineReady) -> None:
        """Called when a source can answer."""
        wanted, self._wanted = self._wanted, None
        if wanted is None:
            return
        back = wanted is self._choices.now
        self._choices.settle(wanted, self._screen.chat.reducer)
        who = f"{ready.target} with {ready.drafter}" if ready.drafter else ready.target
        how = "answers again" if back else f"answers from here on · /model {BEFORE} goes back"
        self._screen.talk.note_above(f"{who} {how}")

    def fail(self, failure: EngineError) -> bool:
        """Called when the source has ended; True where the model before is on its way back."""
        wanted, self._wanted = self._wanted, None
        if wanted is None or wanted is self._choices.now:
            return False
        chat = self._screen.chat
        if chat.unasked is not None:  # it was for that model
            chat.withdraw(chat.unasked)
            self._screen.talk.withdraw()
        said = "\n  ".join(filter(None, (f"✗ {wanted.name or 'That model'}: {failure.message}", failure.hint)))
        self._screen.talk.note(f"{said}\nThe model before comes back.")
        self._begin(self._choices.now)
        return True


def _let_go(join: Callable[[float], None]) -> None:
    """Wait for a source to end, and have its memory back. On a thread."""
    from engine.service import free_memory

    join(LEAVE_SECONDS)
    free_memory()
