"""A pair answering for the bundled traces, nothing shown; needs only what the engine needs."""

from __future__ import annotations

from dataclasses import replace
from queue import SimpleQueue

from dflash_tui.core.advice import as_command
from engine.commands import Ask, Close, EngineOptions, GenerationSettings, Message
from engine.events import EngineError, EngineReady, Event, TurnFinished
from engine.service import EngineService

WARM_UP = Message("user", "Hi")
WARM_UP_TOKENS = 16


class RecordingError(Exception):
    """There is no trace. ``str()`` is why."""


class Answering:
    """A loaded engine. ``loading`` is what it said until it was ready."""

    def __init__(self, options: EngineOptions) -> None:
        self._inbox: SimpleQueue[Event] = SimpleQueue()
        self._engine = EngineService(options, self._inbox.put, as_command)
        self._engine.start()
        self.loading = self._until(EngineReady)

    def answer(self, turn: int, messages: tuple[Message, ...], settings: GenerationSettings) -> list[Event]:
        """Everything that the engine says of one turn. Raises :class:`RecordingError` when it fails."""
        self._engine.send(Ask(turn, messages, settings))
        return self._until(TurnFinished)

    def warm_up(self, settings: GenerationSettings) -> None:
        """Answer something short, so that the next turn meets a warm engine whose caches hold nothing of it."""
        self.answer(0, (WARM_UP,), replace(settings, max_new_tokens=WARM_UP_TOKENS))

    def close(self) -> None:
        self._engine.send(Close())
        self._engine.join()

    def _until(self, last: type[Event]) -> list[Event]:
        said: list[Event] = []
        while not said or not isinstance(said[-1], last):
            said.append(self._inbox.get())
            if isinstance(said[-1], EngineError):
                raise RecordingError(said[-1].message)
        return said
