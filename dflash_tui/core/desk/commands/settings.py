"""Commands on how answers are decoded."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import shorten
from typing import get_args

from engine.commands import AUTO, MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, DraftBy

from ...conversation.models import names_served
from ...conversation.slash import Argument, SlashError
from ...settings.decoding import SETTINGS, SettingName
from ...settings.system import typed_system
from ..command import Command
from ..desk import Desk
from ..makers import NONE, OF_MODEL

SHOWN = 200
"""How many characters of a system prompt are told to the user."""
WHO_GUESSES = {
    "on": "the drafter and the text so far guess",
    "off": "the target writes alone, and its speed is measured",
    "drafter": "the drafter alone guesses",
    "lookup": "guesses are looked up in the text so far",
}


def switch_model(desk: Desk, argument: Argument) -> None:
    """Switch to the model that is named, ``/model NAME drafter OTHER`` with another drafter; without a name say which
    models a server has."""
    name, _, drafter = argument.text.partition(" drafter ")
    if not name.strip():
        if served := names_served(desk.models.source.capabilities.models):
            desk.face.say(served)
            return
        known = ", ".join(model_names(desk))
        raise SlashError(f"{argument.wrong()}{f' Known models: {known}.' if known else ''}")
    desk.models.switch(desk.chat, name.strip(), drafter.strip())


def model_names(desk: Desk) -> list[str]:
    """The names of the models that the server which answers has, then of those that are known by name."""
    known = desk.begin.models.names() if desk.begin.models is not None else ()
    return [*dict.fromkeys((*desk.models.source.capabilities.models, *known))]


def sets(name: SettingName, confirmation: str) -> Callable[[Desk, Argument], None]:
    """A command that changes a setting, and says ``confirmation`` of it."""
    setting = next(each for each in SETTINGS if each.name == name)

    def run(desk: Desk, argument: Argument) -> None:
        desk.require(name)
        desk.adjust(**{name: argument.setting(setting)})
        desk.face.say(
            confirmation.format(argument.text if setting.kind == "switch" else getattr(desk.chat.settings, name))
        )

    return run


def block_sizes(desk: Desk) -> list[str]:
    most = desk.ready.max_block_size if desk.ready is not None else MAX_BLOCK_SIZE
    return [AUTO, *map(str, range(MIN_BLOCK_SIZE, most + 1))]


def set_system(desk: Desk, argument: Argument) -> None:
    """Set the system prompt to the text, or to what is in the file behind an @; ``off`` takes it away. Without words,
    say which it is."""
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
    """Sample as the model's makers do, or as at the start; without a word, say which is in force."""
    if argument.text:
        desk.makers.take(argument.choice(OF_MODEL, NONE), desk.require)
        desk.face.changed("settings")
    desk.face.say(
        "Sampling is as the model's makers have it." if desk.makers.in_force else "Sampling is not the makers'."
    )


def speculate(desk: Desk, argument: Argument) -> None:
    """Choose who guesses. While nobody does, the target's own speed is measured, which later answers are compared
    with."""
    desk.require("speculation")
    word = argument.choice("on", "off", "drafter", "lookup")
    by = word if word in get_args(DraftBy) else "both"
    if by != "both":
        desk.require("draft_by")
    if by == "drafter" and desk.ready is not None and desk.ready.drafter is None:
        raise SlashError("No drafter is loaded: start without --no-speculation or --draft none.")
    desk.adjust(speculation=word != "off", draft_by=by)
    desk.face.say(f"From the next question on {WHO_GUESSES[word]}.")


COMMANDS = (
    Command(
        "model",
        "Another model",
        "another model: a name, folder or URL; - goes back",
        switch_model,
        slash="model",
        takes="name [drafter name]",
        choices=model_names,
    ),
    Command(
        "temperature",
        "Temperature",
        "temperature: 0 always takes the likeliest",
        sets("temperature", "The temperature is {:g}."),
        slash="temp",
        takes="0–2",
    ),
    Command(
        "block",
        "Block size",
        "block size: 16 guesses 15 tokens, auto what pays off",
        sets("block_size", "The block size is {}."),
        slash="block",
        takes="auto|2–16",
        choices=block_sizes,
    ),
    Command("seed", "Seed", "seed of what is left to chance", sets("seed", "The seed is {}."), slash="seed", takes="n"),
    Command(
        "system",
        "System prompt",
        "system prompt: tells the model who it is",
        set_system,
        slash="system",
        takes="[text|@file|off]",
    ),
    Command(
        "preset",
        "As its makers sample",
        "sampling as the model's makers have it",
        set_preset,
        slash="preset",
        takes="[model|none]",
        choices=lambda desk: desk.makers.names,
    ),
    Command(
        "speculation",
        "Who guesses",
        "who guesses, or the target alone, measured",
        speculate,
        slash="speculation",
        takes="on|off|drafter|lookup",
    ),
    Command(
        "think",
        "Think first",
        "lets the model think before its next answers",
        sets("thinking", "Thinking is {} from the next question on."),
        slash="think",
        takes="on|off",
    ),
)
