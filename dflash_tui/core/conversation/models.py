"""Which model of a chat answers, and which did before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..source import SourceFactory
from .slash import SlashError
from .start import Models

BEFORE = "-"
"""Stands for the model before this one in the place of a name, as in ``cd -``."""
LEAVE_SECONDS = 10.0
"""Seconds that the model before may take to end its round."""


@dataclass(slots=True, eq=False)
class ModelChoice:
    name: str
    """The model's name as it was typed; empty for the one that the chat began with, where that was not named."""
    factory: SourceFactory


class ModelChoices:
    """The model that answers now, and the way back."""

    def __init__(self, models: Models | None, factory: SourceFactory) -> None:
        self._models = models
        self.now = ModelChoice(models.first if models else "", factory)
        self._before: ModelChoice | None = None

    def choose(self, name: str, drafter: str, served: Mapping[str, SourceFactory]) -> ModelChoice:
        """The model called ``name``, or the present one with another drafter. ``served``: what the server that answers
        now has. Raises ``SlashError`` and ``Failure`` for what can't be a model."""
        if name in served and not drafter:
            return ModelChoice(name, served[name])
        if name == BEFORE and self._before is not None:
            return self._before
        if self._models is None:
            raise SlashError("The model can't be changed here.")
        if name == BEFORE:
            raise SlashError("There was no other model in this chat yet.")
        wanted = name or self.now.name
        return ModelChoice(wanted, self._models.make(wanted, drafter))

    def settle(self, choice: ModelChoice) -> None:
        """Note that ``choice`` answers now."""
        if choice is not self.now:
            self._before, self.now = self.now, choice


MODELS_NAMED = 40


def names_served(names: Iterable[str]) -> str:
    """What a server has, for whoever asks which models there are; empty where it says nothing."""
    known = list(names)
    more = f" and {len(known) - MODELS_NAMED} more" if len(known) > MODELS_NAMED else ""
    return f"This server has: {', '.join(known[:MODELS_NAMED])}{more}." if known else ""


def short_name(name: str) -> str:
    """The last part of a folder or of ``owner/model``."""
    return name.rstrip("/").rpartition("/")[2] or name
