"""The source that answers beside the chat's own in a race: another server."""

from __future__ import annotations

from collections.abc import Callable

from engine.commands import Close, Command, Stop
from engine.events import EngineError, EngineReady, Event

from ..source import Source, SourceFactory, events_only


class Opponent:
    """A second source, which answers some of the lanes."""

    def __init__(self, source: SourceFactory) -> None:
        self.ready: EngineReady | None = None
        """The model that answers there; None until it can be asked."""
        self.failed = False
        """Whether the opponent's source has ended, and with it the race, but not the chat."""
        self._source: Source = source(events_only(self._take))
        self._hear: Callable[[Event], None] = lambda event: None

    def start(self, hear: Callable[[Event], None]) -> None:
        """Starts the source; ``hear`` is called with each of its events, on the source's thread."""
        self._hear = hear
        self._source.start()

    def send(self, command: Command) -> None:
        self._source.send(command)

    def end(self) -> None:
        self.send(Stop())
        self.send(Close())

    def _take(self, event: Event) -> None:
        self.failed |= isinstance(event, EngineError) and event.fatal
        self._hear(event)
