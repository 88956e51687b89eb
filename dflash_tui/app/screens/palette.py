"""The command palette, closed as quickly as it is opened."""

from __future__ import annotations

from typing import Any

from textual.command import CommandList, CommandPalette, DiscoveryHit, Hits, SearchIcon
from textual.system_commands import SystemCommandsProvider
from textual.worker import Worker

from ..options import options_of
from .once import DismissOnceScreen


class InOrder(SystemCommandsProvider):
    """Offers the application's commands as Textual does, but in the order given: what fits the moment comes first."""

    async def discover(self) -> Hits:
        for name, help, act, shown in self.app.get_system_commands(self.screen):
            if shown:
                yield DiscoveryHit(name, act, help=help)


class Palette(CommandPalette, DismissOnceScreen[None]):
    """Textual's palette. A search that starts after Esc ends quietly."""

    def on_mount(self) -> None:
        """Called beside Textual's own: its icon is two cells wide, which the table of ASCII is not for."""
        if options_of(self).ascii:
            self.query_one(SearchIcon).icon = ">"

    def run_worker(self, *arguments: Any, **options: Any) -> Worker[Any]:
        """Run a worker, as Textual does, but one whose failure does not end the program."""
        return super().run_worker(*arguments, **options | {"exit_on_error": False})

    def _action_command_list(self, action: str) -> None:
        """Move in the list, as Textual does, but only once it has been laid out: before that it has no pages."""
        if any(commands.scrollable_content_region for commands in self.query(CommandList)):
            super()._action_command_list(action)
