"""The preset that is in force."""

from __future__ import annotations

from collections.abc import Callable

from ..conversation.chat import Chat
from ..conversation.start import Start
from ..settings.presets import NONE, Preset, find_preset, preset_in_force
from ..source import Feature


class Presets:
    """Which preset was chosen last, and whether what it says still holds."""

    def __init__(self, chat: Chat, begin: Start) -> None:
        self._chat, self._config = chat, begin.config
        self._at_start = chat.settings
        self.chosen = begin.preset

    def begin(self, *, resumed: bool) -> None:
        """Take over the system prompt of the preset that was chosen at the start, whose settings are in force already.
        A conversation that goes on may be under one still."""
        if self.chosen is None and resumed:
            self.chosen = preset_in_force(self._config, self._chat.system, self._chat.settings)
        elif self.chosen is not None and self.chosen.system is not None:
            self._chat.system = self.chosen.system

    @property
    def names(self) -> list[str]:
        return sorted(self._config.presets)

    def take(self, name: str, require: Callable[[Feature], None]) -> Preset | None:
        """Put a preset in force from the next question on; ``none`` goes back to the settings of the start. Raises
        ``Failure``, and ``SlashError`` for a preset that wants what the source lacks; then nothing changes."""
        preset = None if name == NONE else find_preset(name, self._config)
        self._chat.take_preset(preset, self._at_start, require)
        self.chosen = preset
        return preset

    @property
    def name(self) -> str:
        """The name to show; a star where something was changed since, empty for none."""
        preset, chat = self.chosen, self._chat
        if preset is None:
            return ""
        return preset.name if preset.holds(chat.system, chat.settings) else f"{preset.name}*"
