"""Times the target by itself, without being asked, so that the speed of answers has something to be compared with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from engine.commands import Ask, Stop
from engine.events import EngineReady, Event, TurnFinished

from ..conversation.chat import Chat
from ..conversation.question_context import messages_of
from ..conversation.reducer import BASELINE_TOKENS
from ..source import Source
from .event_queue import ASIDE, EventQueue

QUESTION = "Write a quicksort in Python"
"""What the target is asked for the timing; any model answers it with more than ``TOKENS`` tokens."""
TOKENS = 24
QUIET_SECONDS = 0.7
"""Seconds without a key press or an event before a timing begins: who reads doesn't type."""
TRIES = 4
"""Timings that are begun for one model at most: each ends early when the user wants something."""


class TargetAlone:
    """Times a few tokens without speculation while nobody wants anything else, once for each model. The question goes
    behind the conversation, as the next one will, so the caches keep all that the next one reads."""

    def __init__(self, chat: Chat, queue: EventQueue, source: Callable[[], Source], wanted: bool) -> None:
        self._chat, self._queue, self._source = chat, queue, source
        self._wanted = wanted
        self._model: EngineReady | None = None
        """The model that the fields below are about."""
        self._tries = TRIES
        self._running = False
        self._found: TurnFinished | None = None
        """Written by the engine's thread."""
        self._quiet_since = time.monotonic()
        queue.aside = self._hear

    @property
    def pending(self) -> bool:
        """Whether a timing of this model runs or is still to come."""
        ready, reducer = self._chat.reducer.ready, self._chat.reducer
        if not self._wanted or ready is None or reducer.plain_ms is not None:
            return False
        return (self._running or self._tries > 0) and self._can(ready)

    def give_up(self) -> None:
        """The user wants something: end the timing after the round in flight. Another begins when it is quiet again."""
        self._quiet_since = time.monotonic()
        if self._running and self._found is None:
            self._source().send(Stop())

    def look(self, quiet: float = QUIET_SECONDS) -> bool:
        """Begin a timing if nothing else has gone on for ``quiet`` seconds. To be called now and then. Returns True
        once, when the figure has just been found."""
        ready, reducer = self._chat.reducer.ready, self._chat.reducer
        if not self._wanted or ready is None:
            return False
        if ready is not self._model:
            self._model, self._tries, self._running, self._found = ready, TRIES, False, None
        if self._found is not None:
            return self._take(self._found)
        if self._chat.busy or self._queue.diverted is not None or reducer.phase != "ready":
            self._quiet_since = time.monotonic()
        elif (
            not self._running
            and self._tries
            and reducer.plain_ms is None
            and time.monotonic() - self._quiet_since >= quiet
            and self._can(ready)
        ):
            self._begin()
        return False

    def _can(self, ready: EngineReady) -> bool:
        can = self._source().capabilities.can
        return not ready.dialect and ready.times == "engine" and can("ask") and can("speculation")

    def _begin(self) -> None:
        chat = self._chat
        self._running, self._tries = True, self._tries - 1
        turn = chat.reducer.turn
        said = chat.tree.path if turn is not None and turn.by is self._model else []
        settings = replace(chat.settings, speculation=False, temperature=0.0, thinking=False, max_new_tokens=TOKENS)
        self._source().send(Ask(ASIDE, messages_of(said, chat.system, QUESTION), settings))

    def _take(self, found: TurnFinished) -> bool:
        self._running, self._found = False, None
        self._quiet_since = time.monotonic()
        figures = found.statistics
        if found.reason != "stopped":
            self._tries = 0  # what failed, or said little, would again
        if found.reason in ("stopped", "error") or figures.num_tokens < BASELINE_TOKENS or not figures.tok_s:
            return False
        self._chat.reducer.plain_ms = 1000 / figures.tok_s
        return True

    def _hear(self, event: Event) -> None:
        """Keep the end of the timed turn. Called by the engine's thread. Errors are left out: the end tells of them
        too."""
        if isinstance(event, TurnFinished):
            self._found = event
