"""The preset that is in force on the chat screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from dflash_tui.core.settings.presets import Preset
from dflash_tui.core.source import Feature

if TYPE_CHECKING:
    from .screens.chat import ChatScreen


class Presets:
    """Which one was chosen last, and whether what it says still holds."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._at_start = screen.chat.settings
        self._chosen = screen.begin.preset

    def begin(self) -> None:
        """The settings of the start have the chosen one's already; its system prompt is the chat's."""
        if self._chosen is not None and self._chosen.system is not None:
            self._screen.chat.system = self._chosen.system

    def take(self, preset: Preset | None) -> None:
        """Its system prompt and settings from the next question on; None: those of the start, before any preset. Raises
        ``SlashError`` for one that wants what the source lacks; then nothing changes."""
        screen, chat = self._screen, self._screen.chat
        wanted = self._at_start if preset is None else preset.applied(chat.settings)
        has_system = preset is None or preset.system is not None
        if has_system and preset is not None:
            screen.talk.require("system")
        for name, value in wanted.to_dict().items():
            if value != getattr(chat.settings, name):
                screen.talk.require(cast(Feature, name))  # features have the names of settings
        if has_system:
            chat.system = None if preset is None else preset.system
        chat.settings, self._chosen = wanted, preset
        screen.set_block(wanted.block_size)
        screen.set_temperature(wanted.temperature)
        screen.drawing.draw_status()

    @property
    def name(self) -> str:
        """For the header; a star where something was changed since, empty for none."""
        preset, chat = self._chosen, self._screen.chat
        if preset is None:
            return ""
        return preset.name if preset.holds(chat.system, chat.settings) else f"{preset.name}*"
