"""Leaving a screen once."""

from __future__ import annotations

from typing import TypeVar

from textual import events
from textual.await_complete import AwaitComplete
from textual.screen import Screen

Result = TypeVar("Result")


class DismissOnceScreen(Screen[Result]):
    """A screen that closes once only: a second key, arriving too late, would close the screen below."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close this screen with a result, as Textual does, but only while it is the one on show."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    async def on_click(self, event: events.Click) -> None:
        """A click beside a box is Esc."""
        if self.is_modal and self.is_active and event.widget is self:
            escape = self.active_bindings["escape"]
            await self.app.run_action(escape.binding.action, escape.node)
