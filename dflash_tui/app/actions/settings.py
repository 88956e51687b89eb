"""Actions that move the sliders."""

from __future__ import annotations

from collections.abc import Callable

from dflash_tui.core.conversation.slash import Argument
from dflash_tui.core.desk.command import Command
from dflash_tui.core.source import Feature

from ..chat.screen import ChatScreen
from ..widgets.slider import BlockSlider, Slider, TemperatureSlider

BLOCK = "block size, from the next round on"
TEMPERATURE = "temperature, from the next round on"


def _moves(slider: type[Slider], feature: Feature, by: int) -> Callable[[ChatScreen, Argument], None]:
    def move(screen: ChatScreen, _: Argument) -> None:
        screen.desk.require(feature)
        screen.query_one(slider).action_move(by)

    return move


COMMANDS = {
    "temperature": (
        Command("block-up", "Larger block", BLOCK, _moves(BlockSlider, "block_size", 1), "alt+up", priority=True),
        Command("block-down", "Smaller block", BLOCK, _moves(BlockSlider, "block_size", -1), "alt+down", priority=True),
        Command(
            "temperature-down",
            "Lower temperature",
            TEMPERATURE,
            _moves(TemperatureSlider, "temperature", -1),
            "alt+left",
            priority=True,
        ),
        Command(
            "temperature-up",
            "Higher temperature",
            TEMPERATURE,
            _moves(TemperatureSlider, "temperature", 1),
            "alt+right",
            priority=True,
        ),
    ),
}
