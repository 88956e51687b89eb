"""The preset that is in force on the chat screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_tui.core.settings.presets import Preset, preset_in_force

if TYPE_CHECKING:
    from .screens.chat import ChatScreen


class Presets:
    """Which one was chosen last, and whether what it says still holds."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._at_start = screen.chat.settings
        self._chosen = screen.begin.preset

    def begin(self) -> None:
        """The settings of the start have the chosen one's already; its system prompt is the chat's. A conversation that
        goes on may be under one still."""
        chat, begin = self._screen.chat, self._screen.begin
        if self._chosen is None and begin.conversation is not None:
            self._chosen = preset_in_force(begin.config, chat.system, chat.settings)
        elif self._chosen is not None and self._chosen.system is not None:
            chat.system = self._chosen.system

    def take(self, preset: Preset | None) -> None:
        """Its system prompt and settings from the next question on; None: those of the start, before any preset. Raises
        ``SlashError`` for one that wants what the source lacks; then nothing changes."""
        screen, chat = self._screen, self._screen.chat
        chat.take_preset(preset, self._at_start, screen.talk.require)
        self._chosen = preset
        screen.set_block(chat.settings.block_size)
        screen.set_temperature(chat.settings.temperature)
        screen.drawing.draw_status()
        screen.show_legend()

    @property
    def name(self) -> str:
        """For the header; a star where something was changed since, empty for none."""
        preset, chat = self._chosen, self._screen.chat
        if preset is None:
            return ""
        return preset.name if preset.holds(chat.system, chat.settings) else f"{preset.name}*"
