"""A race from within a chat: what its lanes are asked, and which lanes there are."""

from __future__ import annotations

from engine.commands import AUTO, MIN_BLOCK_SIZE, BlockSize, GenerationSettings, Message
from engine.events import EngineReady

from ..conversation.chat import Chat
from ..conversation.slash import SlashError
from .race import Lane, kind_of, lanes_for

RACE_RUNS = 3
"""Runs per lane: enough for a median, few enough to wait for."""


def own_lanes(settings: GenerationSettings, ready: EngineReady | None) -> tuple[Lane, ...]:
    """The target alone, its drafter at the chosen block size, and at half of it; for auto, at the largest. Raises
    ``SlashError`` where there is nothing to race with."""
    if ready is None:
        raise SlashError("The models are still loading; a race needs them.")
    if ready.drafter is None:
        raise SlashError("There is no drafter to race with: this target runs alone.")
    block = settings.block_rows(ready.max_block_size)
    sizes: list[BlockSize] = [AUTO, block] if settings.block_size == AUTO else [block, max(block // 2, MIN_BLOCK_SIZE)]
    return lanes_for(settings, list(dict.fromkeys(sizes)), kind_of(ready.drafter))


def question_of(chat: Chat, text: str) -> list[Message]:
    """``text`` alone, or the conversation up to its last question. Raises ``SlashError`` where there is none."""
    head = [Message("system", chat.system)] if chat.system else []
    if text:
        return [*head, Message("user", text)]
    said = chat.messages
    last = max((place for place, message in enumerate(said) if message.role == "user"), default=None)
    if last is None:
        raise SlashError("Ask something first, or say what to race with: /race Write a quicksort in Python")
    return [*head, *said[: last + 1]]
