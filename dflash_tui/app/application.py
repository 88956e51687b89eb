"""The Textual application around the chat screen: themes, signals, and the way out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

from textual import events
from textual.app import SystemCommand
from textual.content import Content
from textual.screen import Screen

from dflash_tui.core.conversation.start import Start
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.platforms import SIGNALS
from dflash_tui.core.settings.config import ScreenOptions
from dflash_tui.core.source import SourceFactory
from engine.commands import GenerationSettings
from engine.events import ErrorKind

from .actions import ACTIONS, BoundChatScreen
from .chat.fitting import by_fitness
from .chat.screen import ChatScreen
from .keymap import keys_in_force
from .notices import clear_notices
from .screens.palette import InOrder
from .themed import ThemedApp

PALETTE_NAMES, PALETTE_KEYS = 23, 9
"""Cells of the palette's names, and of the keys behind them; slash commands end its lines."""
LEAVE_SECONDS = 5.0
"""Seconds that an orderly way out may take once a signal has asked for it."""


class ChatApp(ThemedApp):
    """Shows :class:`ChatScreen` until the user or a signal ends it."""

    TITLE = "dflash-chat"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = {InOrder}

    def __init__(
        self,
        settings: GenerationSettings,
        out_dir: Path,
        queue: EventQueue,
        source: SourceFactory,
        theme: str | None = None,
        begin: Start | None = None,
        screen_options: ScreenOptions | None = None,
    ) -> None:
        super().__init__(theme, screen_options)
        self.chat_screen = BoundChatScreen(settings, out_dir, queue, source, begin)
        self.chat_screen.viewer.motion.moves = not self.screen_options.reduced_motion

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the palette offers on the chat: the table of actions, before what Textual brings."""
        if isinstance(screen, ChatScreen):
            keys = keys_in_force(screen.active_bindings)
            for action in by_fitness(ACTIONS.values(), screen.desk):
                if action.listed:
                    slash = f"/{action.slash}" if action.slash else ""
                    name = f"{action.label:{PALETTE_NAMES}} {keys.get(action.id, ''):{PALETTE_KEYS}} {slash}"
                    yield SystemCommand(name.rstrip(), action.title, partial(screen.action_act, action.id))
        yield from super().get_system_commands(screen)

    async def on_event(self, event: events.Event) -> None:
        """The first to see a key: where text typed in a burst goes can't be decided later."""
        if isinstance(event, events.Key) and not event.is_forwarded and isinstance(self.screen, ChatScreen):
            self.screen.catch_text(event)
        await super().on_event(event)

    async def action_quit(self) -> None:
        """What Ctrl+Q does on every screen: leave; where more would end with it, only when pressed again."""
        self.chat_screen.leave()

    def notify(self, message: str, *, title: str = "", markup: bool = True, **options: Any) -> None:
        """Show a notice as Textual does, but put the title on the message's line."""
        if title:
            text = Content.from_markup(message) if markup else Content(message)
            message, markup = Content.assemble((title, "bold"), "  ", text).markup, True
        super().notify(message, markup=markup, **options)

    def on_notify(self) -> None:
        """Remove the notices on show, so that the new one, which Textual adds after this, stands alone."""
        clear_notices(self.screen)

    def on_mount(self) -> None:
        self._catch_signals()
        self.push_screen(self.chat_screen)

    def on_ready(self) -> None:
        # The engine thread imports torch, which keeps the interpreter busy: the first frame goes first. Nothing is
        # drawn before this event, not even what a screen's on_mount puts off with call_after_refresh.
        self.chat_screen.call_after_refresh(self.chat_screen.start)

    @property
    def failure_kind(self) -> ErrorKind | None:
        """Why the engine ended, if it did."""
        failure = self.chat_screen.chat.reducer.failure
        return failure.kind if failure else None

    def _catch_signals(self) -> None:
        """Leave through Textual, which gives the terminal back, instead of dying in the alternate screen."""
        loop = asyncio.get_running_loop()
        for number, code in SIGNALS.items():
            try:
                loop.add_signal_handler(number, partial(self._leave, code))
            except (NotImplementedError, RuntimeError):
                # A test that runs outside the main thread.
                return

    def _leave(self, code: int) -> None:
        """Exit in an orderly way, but not for ever: Textual waits for a terminal that may be gone (SIGHUP)."""
        guard = Timer(LEAVE_SECONDS, os._exit, [code])
        guard.daemon = True
        guard.start()
        self.exit(return_code=code)
