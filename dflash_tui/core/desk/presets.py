"""The preset that is in force."""

from __future__ import annotations

from collections.abc import Callable

from engine.events import EngineReady

from ..conversation.chat import Chat
from ..conversation.start import Start
from ..settings.presets import NONE, OF_MODEL, Preset, find_preset, preset_in_force, preset_of_model
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
        of_model = {OF_MODEL} if self._sampling else set()
        return sorted({*self._config.presets, *of_model})

    @property
    def _sampling(self) -> dict[str, float] | None:
        """How the makers of the model that answers sample."""
        ready = self._chat.reducer.ready
        return None if ready is None else ready.sampling

    def take(self, name: str, require: Callable[[Feature], None]) -> Preset | None:
        """Put a preset in force from the next question on; ``none`` goes back to the settings of the start. Raises
        ``Failure``, and ``SlashError`` for a preset that wants what the source lacks; then nothing changes."""
        preset: Preset | None = None
        if name == OF_MODEL and self._sampling and name not in self._config.presets:
            preset = preset_of_model(self._sampling)
        elif name != NONE:
            preset = find_preset(name, self._config)
        self._chat.take_preset(preset, self._at_start, require)
        self.chosen = preset
        return preset

    def makers_words(self, ready: EngineReady) -> str:
        """What to tell of how a model's makers sample, where the settings in force are others; empty otherwise."""
        if not ready.sampling:
            return ""
        preset = preset_of_model(ready.sampling)
        values = ", ".join(f"{flag.replace('_', '-')} {value:g}" for flag, value in preset.values.items())
        words = ""
        if values and not preset.holds(None, self._chat.settings):
            words = f"The makers of {ready.target} sample at {values}: /preset {OF_MODEL} does."
        if (penalty := ready.sampling.get("repetition_penalty")) is not None:
            words += f" Their repetition_penalty of {penalty:g} isn't computed here: it would change the target's text."
        return words.strip()

    @property
    def name(self) -> str:
        """The name to show; a star where something was changed since, empty for none."""
        preset, chat = self.chosen, self._chat
        if preset is None:
            return ""
        return preset.name if preset.holds(chat.system, chat.settings) else f"{preset.name}*"
