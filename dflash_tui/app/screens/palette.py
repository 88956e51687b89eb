"""The command palette, closed as quickly as it is opened."""

from __future__ import annotations

from typing import Any

from textual.command import CommandList, CommandPalette
from textual.worker import Worker

from .once import LeavesOnce


class Palette(CommandPalette, LeavesOnce[None]):
    """Textual's palette. A search that starts after Esc ends quietly."""

    def run_worker(self, *arguments: Any, **options: Any) -> Worker[Any]:
        """As Textual's, but what fails in it does not end the program."""
        return super().run_worker(*arguments, **options | {"exit_on_error": False})

    def _action_command_list(self, action: str) -> None:
        """As Textual's, but a key that moves in the list waits for one: before it has been laid out it has no pages."""
        if any(commands.scrollable_content_region for commands in self.query(CommandList)):
            super()._action_command_list(action)
