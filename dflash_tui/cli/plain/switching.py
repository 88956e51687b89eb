"""Another model in the same chat in lines: the one before is let go first, and comes back when the new one can't be
had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_tui.core.conversation.models import BEFORE, LEAVE_SECONDS, Choice, Choices
from dflash_tui.core.source import Source, SourceFactory, events_only
from engine.commands import Close, Stop
from engine.events import Event

from ..problems import Problem, show_problem

if TYPE_CHECKING:
    from .chat import PlainChat


class Switching:
    """Which model answers, and going to another."""

    def __init__(self, plain: PlainChat, factory: SourceFactory) -> None:
        self._plain = plain
        self._choices = Choices(plain.begin.models, factory)
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
        wanted = self._choices.choose(name, drafter, self._plain.engine.capabilities.models)
        try:
            self._exchange(wanted)
        except Problem as problem:
            show_problem(problem)
            self._plain.say("The model before comes back.")
            self._exchange(self._choices.now)
            return
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
        self._choices.leave(plain.chat.reducer)
        plain.chat.reducer.load_anew()
        plain.engine.start()
        plain.wait_until_ready()
        self._choices.settle(choice, plain.chat.reducer)
