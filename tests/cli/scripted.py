"""An engine that plays a script, and ``python -m tests.cli.scripted SCRIPT [FLAGS]``: the program on top of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread

from dflash_tui.cli.main import main
from dflash_tui.core.source import Capabilities
from engine.commands import Ask, Close, Command, EngineOptions, Stop
from engine.events import (
    DraftToken,
    EmittedToken,
    EngineError,
    EngineReady,
    Event,
    FinishReason,
    LoadProgress,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
)

ANSWER = ("Hello, ", "wörld 😀\n", "```python hello.py\n", "print('hello')\n", "```\n", "Done")


@dataclass(frozen=True)
class Script:
    pieces: tuple[str, ...] = ANSWER
    pace: float = 0.0
    """Seconds per round."""
    loading: float = 0.0
    """Seconds before the engine is ready."""
    load_error: EngineError | None = None
    error: EngineError | None = None
    """Comes after all pieces."""
    reason: FinishReason = "stop"


class ScriptedEngine:
    """Has the interface of the engine thread. ``asked`` keeps the questions it was given."""

    capabilities = Capabilities()
    recording = None

    def __init__(self, script: Script, options: EngineOptions, emit: Callable[[Event], None]) -> None:
        self.script = script
        self.options = options
        self.asked: list[Ask] = []
        self._closing = False
        self._emit = emit
        self._commands: SimpleQueue[Command] = SimpleQueue()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self, command: Command) -> None:
        self._commands.put(command)

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        self._emit(LoadProgress("reading weights", 3_000_000, 15_000_000, "bytes"))
        time.sleep(self.script.loading)
        if self.script.load_error:
            self._emit(self.script.load_error)
            return
        self._emit(LoadProgress("warming up", 1, 1))
        self._emit(EngineReady("tiny", "tiny-DFlash", "cpu", "float32", 16, 4096, 0.1, "I know little."))
        while not self._closing:
            command = self._commands.get()
            self._closing = isinstance(command, Close)
            if isinstance(command, Ask):
                self.asked.append(command)
                self._answer(command)

    def _answer(self, ask: Ask) -> None:
        self._emit(TurnStarted(ask.turn, 7, 0, ask.settings.to_dict()))
        self._emit(PrefillDone(ask.turn, 5.0))
        text, reason = "", self.script.reason
        for index, piece in enumerate(self.script.pieces):
            time.sleep(self.script.pace)
            if self._stop_requested():
                reason = "stopped"
                break
            self._emit(self._step(ask, index, piece))
            text += piece
        if self.script.error and reason != "stopped":
            self._emit(replace(self.script.error, turn=ask.turn))
            self._closing, reason = self.script.error.fatal, "error"
        statistics = TurnStatistics(7, 0, 12, 4, 60, 8, 3.0, (0, 1, 2, 1), 5.0, 80.0, 137.5)
        self._emit(TurnFinished(ask.turn, reason, text, "a thought", statistics))

    def _step(self, ask: Ask, index: int, piece: str) -> Step:
        tokens = (
            EmittedToken(9, "a thought", "plain", "thought"),
            EmittedToken(index, piece, "accepted"),
            EmittedToken(1, "", "bonus", "control"),
        )
        draft = (DraftToken(index, piece, 0.9),)
        return Step(ask.turn, index, 0.1, draft, 1, tokens, 2, 1.0, 2.0, 3.0, 10 + index, 16, 0.0)

    def _stop_requested(self) -> bool:
        try:
            command = self._commands.get_nowait()
        except Empty:
            return False
        self._closing = isinstance(command, Close)
        return isinstance(command, Stop | Close)


SCRIPTS = {
    "plain": Script(),
    "endless": Script(pieces=("word ",) * 100_000, pace=0.01),
    "loading": Script(loading=3600),
    "stuck": Script(pieces=("word ",), pace=3600),
    "escapes": Script(pieces=("\x1b[31mred\x07\t", "tab")),
}

if __name__ == "__main__":
    script = SCRIPTS[sys.argv[1]]
    sys.exit(main(sys.argv[2:], engine=lambda options: partial(ScriptedEngine, script, options)))
