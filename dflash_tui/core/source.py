"""What a front end needs of an engine: somewhere to send commands. Events come back through the callback that the
factory is given, on the engine's own thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from engine.commands import Command, EngineOptions
from engine.events import Event


class EngineSource(Protocol):
    """See :class:`engine.service.EngineService`, the real one."""

    def start(self) -> None: ...

    def send(self, command: Command) -> None: ...

    def join(self, timeout: float | None = None) -> None: ...


EngineFactory = Callable[[EngineOptions, Callable[[Event], None]], EngineSource]
