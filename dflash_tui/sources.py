"""The sources of events. Another: a class like :class:`dflash_tui.core.source.Source`, and a function here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.commands import EngineOptions
from engine.errors import UsageFailure
from engine.files import working_folder

from .core.advice import as_command
from .core.failures import Failure
from .core.replay.replay_source import ReplaySource
from .core.settings.servers import ServerAddress
from .core.source import Capabilities, Emit, Source, SourceFactory


class EngineSource:
    """The engine of this process, on a thread of its own. It can do everything."""

    recording = None

    def __init__(self, options: EngineOptions, emit: Emit) -> None:
        from engine.service import EngineService  # after the first frame; help and wrong flags never wait for it

        service = EngineService(options, emit, as_command)
        self.capabilities = Capabilities(count=service.count)
        self.start, self.send, self.join = service.start, service.send, service.join


Engine = Callable[[EngineOptions], SourceFactory]
"""Turns options into a source: :func:`engine_source`, or what stands in for it."""
Attach = Callable[[ServerAddress], SourceFactory]
"""Turns an address into a source: :func:`server_source`, or what stands in for it."""
Target = EngineOptions | ServerAddress
"""What is to answer: the engine with a pair, or a server."""


def engine_source(options: EngineOptions) -> SourceFactory:
    return lambda emit: EngineSource(options, emit)


def require_folder() -> None:
    """Raise :class:`Failure` in a folder that is gone, where PyTorch would end the process while it loads."""
    try:
        working_folder.require_folder()
    except UsageFailure as failure:
        raise Failure(str(failure), failure.hint) from None


def local_source(options: EngineOptions) -> SourceFactory:
    """The engine of this process. Raises :class:`Failure` in a folder that is gone."""
    require_folder()
    return engine_source(options)


def server_source(address: ServerAddress) -> SourceFactory:
    """A server that runs elsewhere, asked over HTTP."""

    def create(emit: Emit) -> Source:
        from .attach.source import ServerSource  # after the first frame: its imports take a tenth of a second

        return ServerSource(address, emit)

    return create


def replay_source(path: Path, pace: float | None = None) -> SourceFactory:
    """A recorded run in the engine's place; without a ``pace``, at one that can be followed."""
    return lambda emit: ReplaySource(path, emit, pace)
