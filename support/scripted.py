"""Scripts for the command line; ``python -m support.scripted SCRIPT [FLAGS]`` runs the program on one of them."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from functools import partial

from dflash_tui.cli.main import main
from dflash_tui.core.source import Emit
from engine.commands import NO_DRAFTER, Ask, Close, EngineOptions, Stop
from engine.events import (
    DraftToken,
    EmittedToken,
    EngineError,
    EngineReady,
    FinishReason,
    LoadProgress,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
)
from support.scripted_engine import ScriptedEngine

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


class ScriptPlayer(ScriptedEngine):
    """Tells a script instead of its own answer: a round for each piece, whatever is asked."""

    def __init__(self, script: Script, options: EngineOptions, emit: Emit) -> None:
        super().__init__(emit)
        self.script = script
        self.options = options

    def _load(self) -> bool:
        self._emit(LoadProgress("reading weights", 3_000_000, 15_000_000, "bytes"))
        time.sleep(self.script.loading)
        if self.script.load_error:
            self._emit(self.script.load_error)
            return False
        self._emit(LoadProgress("warming up", 1, 1))
        drafter = None if self.options.drafter == NO_DRAFTER else "tiny-DFlash"
        self._emit(EngineReady("tiny", drafter, "cpu", "float32", 16, 4096, 0.1, "I know little."))
        return True

    def answer_turn(self, ask: Ask) -> bool:
        self._emit(TurnStarted(ask.turn, 7, 0, ask.settings.to_dict()))
        self._emit(PrefillDone(ask.turn, 5.0))
        text, reason, closing = "", self.script.reason, False
        for index, piece in enumerate(self.script.pieces):
            time.sleep(self.script.pace)
            if stops := [command for command in self._waiting_commands() if isinstance(command, Stop | Close)]:
                reason, closing = "stopped", any(isinstance(command, Close) for command in stops)
                break
            self._emit(self._step(ask, index, piece))
            text += piece
        if self.script.error and reason != "stopped":
            self._emit(replace(self.script.error, turn=ask.turn))
            closing, reason = self.script.error.fatal, "error"
        statistics = TurnStatistics(7, 0, 12, 4, 60, 8, 3.0, (0, 1, 2, 1), 5.0, 80.0, 137.5)
        self._emit(TurnFinished(ask.turn, reason, text, "a thought", statistics))
        return closing

    def _step(self, ask: Ask, index: int, piece: str) -> Step:
        tokens = (
            EmittedToken(9, "a thought", "plain", "thought"),
            EmittedToken(index, piece, "accepted"),
            EmittedToken(1, "", "bonus", "control"),
        )
        draft = (DraftToken(index, piece, 0.9),)
        return Step(ask.turn, index, 0.1, draft, 1, tokens, 2, 1.0, 2.0, 3.0, 10 + index, 16, 0.0)


SCRIPTS = {
    "plain": Script(),
    "endless": Script(pieces=("word ",) * 100_000, pace=0.01),
    "torrent": Script(pieces=("many words ",) * 20_000),
    "loading": Script(loading=3600),
    "stuck": Script(pieces=("word ",), pace=3600),
    "escapes": Script(pieces=("\x1b[31mred\x07\t", "tab")),
}


def play(script: str, *flags: str) -> int:
    """Run the program on a script; returns its exit code."""
    return main(flags, engine=lambda options: partial(ScriptPlayer, SCRIPTS[script], options))


if __name__ == "__main__":
    sys.exit(play(*sys.argv[1:]))
