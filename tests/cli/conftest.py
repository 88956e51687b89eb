from __future__ import annotations

import io
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from dflash_tui.cli.main import main
from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.core.source import Emit, SourceFactory
from engine.commands import EngineOptions
from support.scripted import Script, ScriptPlayer

from ..scripted_server import ScriptedServer

SHORT = "Guess, check, keep what is right and go on from there."
"""What servers answer."""


@dataclass
class Program:
    """Runs the command line in this process on a scripted engine."""

    capture: pytest.CaptureFixture[bytes]
    monkeypatch: pytest.MonkeyPatch
    script: Script = field(default_factory=Script)
    engines: list[ScriptPlayer] = field(default_factory=list)
    addresses: list[ServerAddress] = field(default_factory=list)
    """The servers it attached to."""
    server: dict[str, Any] = field(default_factory=dict)
    """What a :class:`ScriptedServer` is made with."""
    code: int = -1
    out: bytes = b""
    err: str = ""

    def run(self, *arguments: str, stdin: bytes | None = b"") -> Program:
        """``stdin=None`` is a terminal."""
        self.monkeypatch.setattr(sys, "stdin", Keyboard() if stdin is None else io.TextIOWrapper(io.BytesIO(stdin)))
        self.code = main(arguments, engine=self.engine_of, attach=self._attach)
        captured = self.capture.readouterr()
        self.out, self.err = captured.out, captured.err.decode()
        return self

    @property
    def engine(self) -> ScriptPlayer:
        return self.engines[-1]

    def engine_of(self, options: EngineOptions) -> SourceFactory:
        def create(emit: Emit) -> ScriptPlayer:
            self.engines.append(ScriptPlayer(self.script, options, emit))
            return self.engines[-1]

        return create

    def _attach(self, address: ServerAddress) -> SourceFactory:
        self.addresses.append(address)
        return lambda emit: ScriptedServer(emit, address=address.url, **{"answer": SHORT, **self.server})


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def program(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(capfdbinary, monkeypatch)
