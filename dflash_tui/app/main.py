"""Opens the screen. The only entrance to it from outside."""

from __future__ import annotations

import sys
from pathlib import Path

from dflash_tui.core.conversation.start import Start
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.exit_codes import exit_code_for
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.settings.config import ScreenOptions
from dflash_tui.core.source import SourceFactory
from engine.commands import GenerationSettings

from .application import ChatApp

SWITCH_INTERVAL = 0.0005
"""Seconds a thread keeps the interpreter lock: at the default 5 ms the engine waits for most of a frame."""
JOIN_SECONDS = 3.0
"""Seconds that leaving waits for the engine to end the round it is in."""


def run_chat(
    source: SourceFactory,
    settings: GenerationSettings,
    out_dir: Path,
    theme: str | None = None,
    begin: Start | None = None,
    log: SessionLog | None = None,
    trace: SessionLog | None = None,
    screen_options: ScreenOptions | None = None,
) -> int:
    """Shows ``source`` until the user leaves; returns 0, 128 + the signal that ended it, or the engine failure's code.
    ``log`` records the conversation, which may go on from ``begin``, and ``trace`` the whole run."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    queue = EventQueue(log or SessionLog.create(), trace)
    app = ChatApp(settings, out_dir, queue, source, theme, begin, screen_options)
    app.run(mouse=app.screen_options.mouse)
    app.chat_screen.join_engine(JOIN_SECONDS)  # the terminal is the user's again by now
    if (not app.return_code or app.mistake) and queue.log.asked and sys.stdout.isatty():
        sys.stdout.write("dflash-chat --continue goes on with this conversation.\n")
    queue.log.close()
    if trace is not None:
        trace.close()
    if app.return_code == 0 and app.failure_kind is not None:
        return exit_code_for(app.failure_kind)
    return app.return_code or 0
