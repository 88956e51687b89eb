"""Leaving a screen once."""

from __future__ import annotations

from typing import TypeVar

from textual import events
from textual.await_complete import AwaitComplete
from textual.screen import Screen

from ..options import overtaken

Result = TypeVar("Result")


class DismissOnceScreen(Screen[Result]):
    """A screen that closes once only: a second key, arriving too late, would close the screen below."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close this screen with a result, as Textual does, but only while it is the one on show."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    @property
    def is_gone(self) -> bool:
        """Whether it was taken from the stack: parts of it may not be there any more."""
        return self not in self.app.screen_stack

    async def on_event(self, event: events.Event) -> None:
        """Leave a size or a key alone that arrives while this screen is taken away. So it
        is with a size that was overtaken."""
        gone = self.is_gone and isinstance(event, events.Resize | events.InputEvent)
        if not gone and not (isinstance(event, events.Resize) and overtaken(self, event.size)):
            await super().on_event(event)

    async def on_click(self, event: events.Click) -> None:
        """A click beside a box is Esc."""
        if self.is_modal and self.is_active and event.widget is self:
            escape = self.active_bindings["escape"]
            await self.app.run_action(escape.binding.action, escape.node)
