"""Leaving a screen once."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import Screen

Result = TypeVar("Result")


class LeavesOnce(Screen[Result]):
    """Closes once: a second key, arriving too late, would close the screen below."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """As Textual's, but only while this screen is the one on show."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
