"""Textual's pilot, waiting for what it waits for: every message that follows from a key, not for an idle processor.

Textual's own calls a process idle that takes little processor time for 20 ms, and waits up to a second for that. Beside
an engine that streams it waits out the second, key by key, until the answer is over; on a busy machine a process that
got no processor looks idle while its messages still wait.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Iterator

from textual import events
from textual.keys import REPLACED_KEYS, _character_to_key, _get_unicode_name_from_key
from textual.message_pump import MessagePump
from textual.pilot import Pilot


def key_event(key: str) -> events.Key:
    """What a terminal would send for a key's name, or for a character."""
    name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
    try:
        character = unicodedata.lookup(_get_unicode_name_from_key(REPLACED_KEYS.get(name, name)))
    except KeyError:
        character = name if len(name) == 1 else None
    return events.Key(name, character)


class SteadyPilot(Pilot[None]):
    """A press returns when the screen has done everything that it led to; so does a pause without a length."""

    async def press(self, *keys: str) -> None:
        for key in keys:
            self.app.post_message(key_event(key))
            await self.settle()

    async def pause(self, delay: float | None = None) -> None:
        await self.settle()
        if delay is not None:
            await asyncio.sleep(delay)

    async def settle(self) -> None:
        """Until no message waits anywhere, and the screen is laid out: handling one may send another, one widget
        further up, and what is drawn may ask to be called once it is."""
        while await self._wait_for_screen():
            await self.app.animator.wait_until_complete()
            while self.app._batch_count and not self.app._exit:  # the screen keeps still for an answer to begin
                await asyncio.sleep(0.005)
            screen = self.app.screen
            screen._on_timer_update()  # the next refresh, now
            if not (screen._callbacks or any(pump.message_queue_size for pump in self._pumps())):
                return

    def _pumps(self) -> Iterator[MessagePump]:
        yield self.app
        for screen in self.app.screen_stack:
            yield from screen.walk_children(with_self=True)
