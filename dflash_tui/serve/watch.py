"""Shows a server as a source of events: a screen shows what is being answered, and asks nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Thread

from dflash_tui.core.source import ASKING, Capabilities, Emit, Happening, Rewind
from dflash_tui.core.text.counted import counted
from engine.commands import Close, Command
from engine.events import EngineReady, Step, TurnStarted

from .server import Serving

MOST_TOKENS = 100_000
"""Tokens that are shown before the window begins anew: a server may run for weeks."""
MOST_CHARACTERS, LAST_CHARACTERS = 3000, 1000
"""Characters of a prompt that are shown, and of its end when it is longer: agents send whole files."""

ASKED_ELSEWHERE = "This is a window on the server: questions come from its clients. A chat of your own: dflash-chat"
PLACEHOLDER = "A window on the server; / commands work, F1 helps, Ctrl+Q ends the server."
LEAVING = "The server ends with this window. Again, and it does."


class WatchSource:
    """Mirrors a server's events; the server starts and ends with it."""

    capabilities = Capabilities(dict.fromkeys(ASKING, ASKED_ELSEWHERE), placeholder=PLACEHOLDER, leaving=LEAVING)
    recording = None

    def __init__(self, emit: Emit, serve: Callable[[Emit], Serving], about: Callable[[Serving], str]) -> None:
        """``serve`` makes the server, which listens from then on; ``about`` says in words how to reach it."""
        self._emit = emit
        self._about = about
        self._serving = serve(self._mirror)
        self._ending: Thread | None = None
        self._ready: EngineReady | None = None
        self._shown = 0
        """How many tokens were shown since the window began anew."""

    def start(self) -> None:
        self._serving.start()

    def send(self, command: Command) -> None:
        if isinstance(command, Close) and self._ending is None:
            self._ending = Thread(target=self._serving.end, name="ending", daemon=True)
            self._ending.start()

    def join(self, timeout: float | None = None) -> None:
        if self._ending is not None:
            self._ending.join(timeout)
        self._serving.join(timeout)

    def _mirror(self, event: Happening) -> None:
        """Mirrors an event of the engine, on the engine's thread."""
        match event:
            case EngineReady():
                words = self._about(self._serving)
                self._ready = event = replace(event, banner=f"{event.banner}\n\n{words}".strip())
            case TurnStarted():
                self._begin_anew_if_full()
                event = replace(event, question=shortened(event.question))
            case Step():
                self._shown += event.num_emitted
        self._emit(event)

    def _begin_anew_if_full(self) -> None:
        if self._shown > MOST_TOKENS and self._ready is not None:
            self._shown = 0
            self._emit(Rewind())
            self._emit(self._ready)


def shortened(question: str) -> str:
    """A long prompt's beginning and end."""
    left = len(question) - MOST_CHARACTERS
    if left <= 0:
        return question
    gap = f"\n… {counted(left, 'character')} …\n"
    return f"{question[: MOST_CHARACTERS - LAST_CHARACTERS]}{gap}{question[-LAST_CHARACTERS:]}"
