"""Commands on how answers are decoded."""

from __future__ import annotations

from textwrap import shorten

from engine.commands import AUTO, MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, DraftBy

from ...conversation.models import names_served
from ...conversation.slash import Argument, SlashError
from ...settings.presets import NONE, typed_system
from ..command import Command
from ..desk import Desk

SHOWN = 200
"""Characters of a system prompt that are said."""
WHO_GUESSES = {
    "on": "the drafter and the text so far guess",
    "off": "the target writes alone, and its speed is measured",
    "drafter": "the drafter alone guesses",
    "lookup": "guesses are looked up in the text so far",
}


def switch_model(desk: Desk, argument: Argument) -> None:
    """The model, and another drafter behind the word ``drafter``."""
    name, _, drafter = argument.text.partition(" drafter ")
    if not name.strip():
        if served := names_served(desk.models.source.capabilities.models):
            desk.face.say(served)
            return
        known = ", ".join(model_names(desk))
        raise SlashError(f"{argument.wrong()}{f' Known models: {known}.' if known else ''}")
    desk.models.switch(desk.chat, name.strip(), drafter.strip())


def model_names(desk: Desk) -> list[str]:
    """What the server that answers has, then the models that are known by name."""
    known = desk.begin.models.names() if desk.begin.models is not None else ()
    return [*dict.fromkeys((*desk.models.source.capabilities.models, *known))]


def set_temperature(desk: Desk, argument: Argument) -> None:
    desk.require("temperature")
    desk.set_temperature(argument.number(greedy=0.0))
    desk.face.say(f"The temperature is {desk.chat.settings.temperature:g}.")


def set_block(desk: Desk, argument: Argument) -> None:
    desk.require("block_size")
    desk.set_block(argument.block_size())
    desk.face.say(f"The block size is {desk.chat.settings.block_size}.")


def block_sizes(desk: Desk) -> list[str]:
    most = desk.ready.max_block_size if desk.ready is not None else MAX_BLOCK_SIZE
    return [AUTO, *map(str, range(MIN_BLOCK_SIZE, most + 1))]


def set_seed(desk: Desk, argument: Argument) -> None:
    desk.require("seed")
    desk.chat.reseed(argument.integer())
    desk.face.say(f"The seed is {desk.chat.settings.seed}.")


def set_system(desk: Desk, argument: Argument) -> None:
    """The text itself, or what is in the file behind an @; ``off`` takes it away. Without words: which it is."""
    desk.require("system")
    if argument.text:
        desk.chat.system = typed_system(argument.text)
        desk.face.changed("settings")
    system = desk.chat.system
    if system is None:
        desk.face.say("There is no system prompt.")
    else:
        desk.face.say(f"The system prompt is: {shorten(system, SHOWN, placeholder='...')}")


def set_preset(desk: Desk, argument: Argument) -> None:
    """Without a name: which there are."""
    if not argument.text:
        known = ", ".join(desk.presets.names)
        there = f"Presets: {known}." if known else "config.toml describes no presets: [presets.NAME] is one."
        desk.face.say(f"{there} In force: {desk.presets.name or 'none'}.")
        return
    preset = desk.presets.take(argument.text, desk.require)
    desk.face.changed("settings")
    desk.face.say(f"The preset {preset.name} is in force." if preset else "No preset is in force.")


def think(desk: Desk, argument: Argument) -> None:
    desk.require("thinking")
    desk.chat.think(argument.switch())
    desk.face.say(f"Thinking is {argument.text} from the next question on.")


def speculate(desk: Desk, argument: Argument) -> None:
    """Without speculation the target's own speed is measured, which answers after that are compared with."""
    desk.require("speculation")
    word = argument.choice("on", "off", "drafter", "lookup")
    by: DraftBy = "drafter" if word == "drafter" else "lookup" if word == "lookup" else "both"
    if by != "both":
        desk.require("draft_by")
    if by == "drafter" and desk.ready is not None and desk.ready.drafter is None:
        raise SlashError("No drafter is loaded: start without --no-speculation or --draft none.")
    desk.chat.speculate(word != "off", by)
    desk.face.changed("settings")
    desk.face.say(f"From the next question on {WHO_GUESSES[word]}.")


COMMANDS = (
    Command(
        "model",
        "switch to another model: a name, folder, GGUF or URL; - goes back",
        switch_model,
        slash="model",
        takes="name [drafter name]",
        choices=model_names,
    ),
    Command("temperature", "temperature; 0 is greedy", set_temperature, slash="temp", takes="0–2"),
    Command(
        "block",
        "block size: 16 drafts 15 tokens and adds one; auto checks as many as pay off",
        set_block,
        slash="block",
        takes="auto|2–16",
        choices=block_sizes,
    ),
    Command("seed", "seed of the sampling noise", set_seed, slash="seed", takes="n"),
    Command(
        "system",
        "system prompt from the next question on; without words: which it is",
        set_system,
        slash="system",
        takes="[text|@file|off]",
    ),
    Command(
        "preset",
        "a system prompt and settings under one name; without a name: which there are",
        set_preset,
        slash="preset",
        takes="[name|none]",
        choices=lambda desk: [*desk.presets.names, NONE],
    ),
    Command(
        "speculation",
        "who guesses, or the target alone, measured",
        speculate,
        slash="speculation",
        takes="on|off|drafter|lookup",
    ),
    Command("think", "let the model think first, from the next question on", think, slash="think", takes="on|off"),
)
