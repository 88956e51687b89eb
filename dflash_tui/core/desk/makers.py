"""How a model's makers sample, where they say so: told once, and put in force by a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from engine.events import EngineReady

from ..conversation.chat import Chat
from ..conversation.slash import SlashError
from ..settings.decoding import SETTINGS
from ..source import Feature

NONE, OF_MODEL = "none", "model"
"""What stands for the settings of the start, and for those with which the model's makers sample."""


class Makers:
    """The settings of the model's makers, and the way back to those of the start."""

    def __init__(self, chat: Chat) -> None:
        self._chat, self._at_start = chat, chat.settings

    @property
    def names(self) -> list[str]:
        return [OF_MODEL, NONE] if _values(self._chat.reducer.ready) else [NONE]

    @property
    def in_force(self) -> bool:
        """Whether decoding is set as the makers sample."""
        values = _values(self._chat.reducer.ready)
        return bool(values) and replace(self._chat.settings, **values) == self._chat.settings

    def take(self, name: str, require: Callable[[Feature], None]) -> None:
        """Sample as the makers do from the next question on, or as at the start. Raises ``SlashError`` where they don't
        say how, and for what the source lacks; then nothing changes."""
        values = _values(self._chat.reducer.ready)
        if name == OF_MODEL and not values:
            raise SlashError(f"The makers of this model don't say how to sample; /preset {NONE} is the start's way.")
        wanted = replace(self._chat.settings, **values) if name == OF_MODEL else self._at_start
        for field, value in wanted.to_dict().items():
            if value != getattr(self._chat.settings, field):
                require(cast(Feature, field))  # features have the names of settings
        self._chat.settings = wanted

    def words(self, ready: EngineReady) -> str:
        """What to tell of how a model's makers sample, where the settings in force are others; empty otherwise."""
        values = ", ".join(f"{name.replace('_', '-')} {value:g}" for name, value in _values(ready).items())
        words = ""
        if values and not self.in_force:
            words = f"The makers of {ready.target} sample at {values}: /preset {OF_MODEL} does."
        if (penalty := (ready.sampling or {}).get("repetition_penalty")) is not None:
            words += f" Their repetition_penalty of {penalty:g} isn't computed here: it would change the target's text."
        return words.strip()


def _values(ready: EngineReady | None) -> dict[str, Any]:
    """The settings that the makers of a model name, of those that there are."""
    known = {setting.name for setting in SETTINGS}
    sampling = ready.sampling if ready is not None else None
    return {name: value for name, value in (sampling or {}).items() if name in known}
