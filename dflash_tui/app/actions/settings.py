"""Actions on how answers are decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_tui.core.conversation.models import names_served
from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.failures import Failure
from dflash_tui.core.settings.presets import NONE, find_preset, typed_system
from dflash_tui.core.text.wrapping import shortened
from engine.commands import AUTO, DraftBy

from ..widgets.slider import BlockSlider, TemperatureSlider
from .action import Action

if TYPE_CHECKING:
    from ..screens.chat import ChatScreen

BLOCK = "block size, from the next round on"
TEMPERATURE = "temperature, from the next round on"
SHOWN = 200
"""Cells of a system prompt in a notice."""


def larger_block(screen: ChatScreen, _: Argument) -> None:
    screen.talk.require("block_size")
    screen.query_one(BlockSlider).action_move(1)


def smaller_block(screen: ChatScreen, _: Argument) -> None:
    screen.talk.require("block_size")
    screen.query_one(BlockSlider).action_move(-1)


def warmer(screen: ChatScreen, _: Argument) -> None:
    screen.talk.require("temperature")
    screen.query_one(TemperatureSlider).action_move(1)


def cooler(screen: ChatScreen, _: Argument) -> None:
    screen.talk.require("temperature")
    screen.query_one(TemperatureSlider).action_move(-1)


def set_block(screen: ChatScreen, argument: Argument) -> None:
    screen.talk.require("block_size")
    screen.set_block(argument.block_size())


def set_temperature(screen: ChatScreen, argument: Argument) -> None:
    screen.talk.require("temperature")
    screen.set_temperature(argument.number(greedy=0.0))


def set_seed(screen: ChatScreen, argument: Argument) -> None:
    screen.talk.require("seed")
    screen.chat.reseed(argument.integer())


def set_system(screen: ChatScreen, argument: Argument) -> None:
    """The text itself, or what is in the file behind an @; ``off`` takes it away. Without words: which it is."""
    screen.talk.require("system")
    if argument.text:
        try:
            screen.chat.system = typed_system(argument.text)
        except Failure as failure:
            raise SlashError(f"{failure} {failure.hint}") from None
        screen.drawing.draw_status()
    system = screen.chat.system
    if system is None:
        screen.notify("There is no system prompt from the next question on.", timeout=3)
    else:
        words = shortened(" ".join(system.split()), SHOWN)
        screen.notify(f"The system prompt is: {words}", timeout=4, markup=False)


def choose_preset(screen: ChatScreen, argument: Argument) -> None:
    """System prompt and settings of ``[presets.NAME]`` from the next question on; ``none`` is what there was at the
    start."""
    if not argument.text:
        known = ", ".join(sorted(screen.begin.config.presets))
        raise SlashError(
            f"/preset takes a name: {known}."
            if known
            else "There is no preset yet: write [presets.NAME] into config.toml."
        )
    try:
        preset = None if argument.text == NONE else find_preset(argument.text, screen.begin.config)
    except Failure as failure:
        raise SlashError(f"{failure} {failure.hint}") from None
    screen.presets.take(preset)
    words = "What was set at the start is in force" if preset is None else f"The preset {preset.name} is in force"
    screen.notify(f"{words} from the next question on.", timeout=3, markup=False)


def think(screen: ChatScreen, argument: Argument) -> None:
    screen.talk.require("thinking")
    thinking = argument.switch()
    screen.chat.think(thinking)
    screen.notify(f"Thinking is {'on' if thinking else 'off'} from the next question on.", timeout=3)


WHO_GUESSES: dict[DraftBy, str] = {
    "both": "the drafter guesses again, and the text itself",
    "drafter": "the drafter guesses alone",
    "lookup": "what stood in the text before is the guess",
}


def speculate(screen: ChatScreen, argument: Argument) -> None:
    """Without speculation the target's own speed is measured, which answers after that are compared with."""
    screen.talk.require("speculation")
    word = argument.choice("on", "off", "drafter", "lookup")
    by: DraftBy = "drafter" if word == "drafter" else "lookup" if word == "lookup" else "both"
    if by != "both":
        screen.talk.require("draft_by")
    speculation = word != "off"
    ready = screen.chat.reducer.ready
    if by == "drafter" and ready is not None and ready.drafter is None:
        screen.notify("No drafter is loaded: start without --no-speculation or --draft none.", severity="warning")
        return
    screen.chat.speculate(speculation, by)
    screen.show_legend()
    words = WHO_GUESSES[by] if speculation else "the target writes alone, and its speed is measured"
    screen.notify(f"From the next question on {words}.", timeout=4)


def choose_model(screen: ChatScreen, argument: Argument) -> None:
    """The model, and another drafter behind the word ``drafter``."""
    name, _, drafter = argument.text.partition(" drafter ")
    if not name.strip():
        if served := names_served(screen.source.capabilities.models):
            screen.talk.note(served)
            return
        raise argument.wrong()
    screen.switching.switch(name.strip(), drafter.strip())


def model_names(screen: ChatScreen) -> list[str]:
    known = screen.begin.models.names() if screen.begin.models is not None else ()
    return [*dict.fromkeys((*screen.source.capabilities.models, *known))]


ACTIONS = (
    Action(
        "model",
        "switch to another model: a name, folder, GGUF or URL; - goes back",
        choose_model,
        slash="model",
        takes="name [drafter name]",
        choices=model_names,
    ),
    Action("block-up", BLOCK, larger_block, "alt+up", priority=True),
    Action("block-down", BLOCK, smaller_block, "alt+down", priority=True),
    Action("temperature-down", TEMPERATURE, cooler, "alt+left", priority=True),
    Action("temperature-up", TEMPERATURE, warmer, "alt+right", priority=True),
    Action("temperature", "temperature; 0 is greedy", set_temperature, slash="temp", takes="0–2"),
    Action(
        "block",
        "block size: 16 drafts 15 tokens and adds one; auto checks as many as pay off",
        set_block,
        slash="block",
        takes="auto|2–16",
        choices=lambda screen: [AUTO, *map(str, screen.query_one(BlockSlider).sizes)],
    ),
    Action("seed", "seed of the sampling noise", set_seed, slash="seed", takes="n"),
    Action("system", "system prompt from the next question on", set_system, slash="system", takes="[text|@file|off]"),
    Action(
        "preset",
        "system prompt and settings of [presets.NAME] in config.toml, or none",
        choose_preset,
        slash="preset",
        takes="name",
        choices=lambda screen: [*sorted(screen.begin.config.presets), NONE],
    ),
    Action(
        "speculation",
        "let drafter and text guess, or one of them, or measure the target alone; from the next question on",
        speculate,
        slash="speculation",
        takes="on|off|drafter|lookup",
    ),
    Action("think", "let the model think first, from the next question on", think, slash="think", takes="on|off"),
)
