"""A race from within a chat: what its lanes are asked, and which lanes there are."""

from __future__ import annotations

from dataclasses import replace

from engine.commands import AUTO, MIN_BLOCK_SIZE, NO_DRAFTER, BlockSize, GenerationSettings, Message
from engine.events import EngineReady

from ..conversation.chat import Chat
from ..conversation.slash import SlashError
from ..race.lanes import LOOKUP, Lane, kind_of, lanes_for, lanes_of

RACE_RUNS = 3
"""Runs per lane: the first is shown, those behind it make medians of the figures."""
RACE_TOKENS = 200
"""Tokens that a lane writes at most: enough to see who is faster, few enough to wait for the target alone."""


def shortened(settings: GenerationSettings) -> GenerationSettings:
    """The settings with a limit of ``RACE_TOKENS`` tokens, since somebody waits for the race."""
    return replace(settings, max_new_tokens=min(settings.max_new_tokens, RACE_TOKENS))


def own_lanes(settings: GenerationSettings, ready: EngineReady | None, looks_up: bool) -> tuple[Lane, ...]:
    """The target alone, its drafter at the chosen block size, and at half of it; for auto, at the largest. Where it can
    look drafts up, these alone too. Raises ``SlashError`` where there is nothing to race with."""
    if ready is None:
        raise SlashError("The models are still loading; a race needs them.")
    settings = shortened(settings)
    alone, lookup = lanes_of(settings, [settings.block_size], [NO_DRAFTER, LOOKUP])[0]
    if ready.drafter is None and not looks_up:
        raise SlashError("There is no drafter to race with: this target runs alone.")
    if ready.drafter is None:
        return alone, lookup
    block = settings.block_rows(ready.max_block_size)
    sizes: list[BlockSize] = [AUTO, block] if settings.block_size == AUTO else [block, max(block // 2, MIN_BLOCK_SIZE)]
    drafted = replace(settings, draft_by="both") if settings.draft_by == LOOKUP else settings
    drafting = lanes_for(drafted, list(dict.fromkeys(sizes)), ready.method or kind_of(ready.drafter))
    return (*drafting, *([lookup] if looks_up else []))


def question_of(chat: Chat, text: str) -> list[Message]:
    """The messages that a race asks: ``text`` alone, or without one the conversation up to its last question.
    Raises ``SlashError`` where there is none."""
    head = [Message("system", chat.system)] if chat.system else []
    if text:
        return [*head, Message("user", text)]
    messages = chat.messages
    last = max((index for index, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise SlashError("Ask something first, or say what to race with: /race Write a quicksort in Python")
    return [*head, *messages[: last + 1]]
