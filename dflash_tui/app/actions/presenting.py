"""Actions that compare and present: the race, and exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_tui.core.export.document import origin_of
from dflash_tui.core.race import Race, RaceResult, lanes_for
from dflash_tui.core.slash import Argument, SlashError
from engine.commands import MIN_BLOCK_SIZE, Message

from ..screens.race import RaceScreen
from .action import Action

if TYPE_CHECKING:
    from ..screens.chat import ChatScreen

RACE_RUNS = 3
"""Runs per lane: enough for a median, few enough to wait for."""


def race(screen: ChatScreen, argument: Argument) -> None:
    """The target alone, DFlash at the block size of the slider, and DFlash at half of it."""
    if screen.chat.busy:
        raise SlashError("An answer is on its way; a race needs the engine for itself. Esc stops it.")
    ready = screen.chat.reducer.ready
    if ready is None:
        raise SlashError("The models are still loading; a race needs them.")
    if ready.drafter is None:
        raise SlashError("There is no drafter to race with: this target runs alone.")
    settings = screen.chat.settings
    block = min(settings.block_size, ready.max_block_size)
    lanes = lanes_for(settings, sorted({block, max(block // 2, MIN_BLOCK_SIZE)}, reverse=True))
    messages = _question(screen, argument.text)

    def create() -> Race:
        return Race(messages, lanes, RACE_RUNS, screen.source.send)

    def finish(result: RaceResult | None) -> None:
        if result is not None and result.lanes[0].tok_s:
            screen.chat.reducer.plain_ms = 1000 / result.lanes[0].tok_s
            screen.draw_gauges()

    screen.app.push_screen(RaceScreen(create, screen.queue, origin_of(ready), screen.out_dir), finish)


def _question(screen: ChatScreen, text: str) -> list[Message]:
    """``text`` alone, or the conversation up to its last question."""
    head = [Message("system", screen.chat.system)] if screen.chat.system else []
    if text:
        return [*head, Message("user", text)]
    said = screen.chat.messages
    last = max((place for place, message in enumerate(said) if message.role == "user"), default=None)
    if last is None:
        raise SlashError("Ask something first, or say what to race with: /race Write a quicksort in Python")
    return [*head, *said[: last + 1]]


ACTIONS = (
    Action("race", "race the target alone against DFlash", race, "f6,alt+r", "race", "[question]", priority=True),
)
