"""Another model in the same chat in lines: the one before is let go first, and comes back when the new one can't be
had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.source import Source, SourceFactory, events_only
from engine.commands import Close, Stop
from engine.events import Event

from ..problems import Problem, show_problem

if TYPE_CHECKING:
    from .chat import PlainChat

BEFORE = "-"
"""In the place of a name: the model before this one."""
LEAVE_SECONDS = 10.0
"""How long the model before may take to end its round."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A model that can be gone to."""

    name: str
    """As it was typed; empty for the one that the chat began with, where that was not named."""
    factory: SourceFactory


class Switching:
    """Which model answers, and going to another."""

    def __init__(self, plain: PlainChat, factory: SourceFactory) -> None:
        self._plain = plain
        self._now = Choice(plain.begin.models.first if plain.begin.models else "", factory)
        self._before: Choice | None = None
        self._made = 0

    def made(self, factory: SourceFactory) -> Source:
        """A source that is heard until the next one is made: what it says later belongs to nobody."""
        self._made += 1
        number = self._made

        def take(event: Event) -> None:
            if number == self._made:
                self._plain.take_event(event)

        return factory(events_only(take))

    def switch(self, name: str, drafter: str = "") -> None:
        """Have the model called ``name`` answer. Raises ``SlashError`` and ``Failure`` for what can't be a model, and
        :class:`Problem` where the one before doesn't come back either."""
        models = self._plain.begin.models
        if models is None:
            raise SlashError("The model can't be changed here.")
        if name == BEFORE and self._before is None:
            raise SlashError("There was no other model in this chat yet.")
        back = self._before if name == BEFORE else None
        wanted = back or Choice(name, models.make(name, drafter))
        try:
            self._exchange(wanted)
        except Problem as problem:
            show_problem(problem)
            self._plain.say("The model before comes back.")
            self._exchange(self._now)
            return
        self._before, self._now = self._now, wanted
        ready = self._plain.chat.reducer.ready
        self._plain.say(f"{ready.target if ready else name} answers from here on; /model {BEFORE} goes back.")

    def _exchange(self, choice: Choice) -> None:
        from engine.service import free_memory

        plain, old = self._plain, self._plain.engine
        plain.engine = self.made(choice.factory)
        old.send(Stop())
        old.send(Close())
        old.join(LEAVE_SECONDS)
        free_memory()
        plain.chat.reducer.load_anew()
        plain.engine.start()
        plain.wait_until_ready()
