"""The command palette, closed as quickly as it is opened."""

from __future__ import annotations

from typing import Any

from textual.command import CommandList, CommandPalette, DiscoveryHit, Hits, SearchIcon
from textual.system_commands import SystemCommandsProvider
from textual.worker import Worker

from ..options import options_of
from .once import LeavesOnce


class InOrder(SystemCommandsProvider):
    """As Textual's, but nothing is sorted: what fits the moment comes first."""

    async def discover(self) -> Hits:
        for name, help, act, shown in self.app.get_system_commands(self.screen):
            if shown:
                yield DiscoveryHit(name, act, help=help)


class Palette(CommandPalette, LeavesOnce[None]):
    """Textual's palette. A search that starts after Esc ends quietly."""

    def on_mount(self) -> None:
        """Called beside Textual's own: its icon is two cells wide, which the table of ASCII is not for."""
        if options_of(self).ascii:
            self.query_one(SearchIcon).icon = ">"

    def run_worker(self, *arguments: Any, **options: Any) -> Worker[Any]:
        """As Textual's, but what fails in it does not end the program."""
        return super().run_worker(*arguments, **options | {"exit_on_error": False})

    def _action_command_list(self, action: str) -> None:
        """As Textual's, but a key that moves in the list waits for one: before it has been laid out it has no pages."""
        if any(commands.scrollable_content_region for commands in self.query(CommandList)):
            super()._action_command_list(action)
