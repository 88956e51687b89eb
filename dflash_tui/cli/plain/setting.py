"""Commands on how answers are decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_tui.core.attachments.reading import AttachmentError
from dflash_tui.core.conversation.models import names_served
from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.settings.presets import NONE, find_preset, typed_system
from engine.commands import DraftBy

from .command import Command

if TYPE_CHECKING:
    from .chat import PlainChat

_WHO_GUESSES = {
    "on": "the drafter and the text so far guess",
    "off": "the target writes alone, and its speed is measured",
    "drafter": "the drafter alone guesses",
    "lookup": "guesses are looked up in the text so far",
}


def set_temperature(plain: PlainChat, argument: Argument) -> None:
    plain.require("temperature")
    plain.chat.adjust(temperature=argument.number())
    plain.say(f"The temperature is {plain.chat.settings.temperature:g}.")


def set_block(plain: PlainChat, argument: Argument) -> None:
    plain.require("block_size")
    plain.chat.adjust(block_size=argument.block_size())
    plain.say(f"The block size is {plain.chat.settings.block_size}.")


def set_seed(plain: PlainChat, argument: Argument) -> None:
    plain.require("seed")
    plain.chat.reseed(argument.integer())
    plain.say(f"The seed is {plain.chat.settings.seed}.")


def set_system(plain: PlainChat, argument: Argument) -> None:
    """``/system`` says what it is, ``/system off`` takes it away."""
    plain.require("system")
    if argument.text:
        try:
            plain.chat.system = typed_system(argument.text)
        except AttachmentError as error:
            raise SlashError(f"{error} {error.hint}") from None
    system = plain.chat.system
    plain.say(f"The system prompt is: {system}" if system else "There is no system prompt.")


def set_preset(plain: PlainChat, argument: Argument) -> None:
    """``/preset`` says which there are; ``/preset none`` goes back to the settings of the start."""
    if not argument.text:
        known = sorted(plain.begin.config.presets)
        plain.say(f"Presets: {', '.join(known)}." if known else "config.toml describes no presets.")
        plain.say(f"In force: {plain.preset.name if plain.preset else 'none'}.")
        return
    preset = None if argument.text == NONE else find_preset(argument.text, plain.begin.config)
    plain.chat.take_preset(preset, plain.at_start, plain.require)
    plain.preset = preset
    plain.say(f"The preset {preset.name} is in force." if preset else "No preset is in force.")


def think(plain: PlainChat, argument: Argument) -> None:
    plain.require("thinking")
    plain.chat.think(argument.switch())
    plain.say(f"Thinking is {argument.text} from the next question on.")


def speculate(plain: PlainChat, argument: Argument) -> None:
    """Without speculation the target's own speed is measured, which answers after that are compared with."""
    plain.require("speculation")
    word = argument.choice("on", "off", "drafter", "lookup")
    by: DraftBy = "drafter" if word == "drafter" else "lookup" if word == "lookup" else "both"
    if by != "both":
        plain.require("draft_by")
    ready = plain.chat.reducer.ready
    if by == "drafter" and ready is not None and ready.drafter is None:
        raise SlashError("No drafter is loaded: start without --no-speculation or --draft none.")
    plain.chat.speculate(word != "off", by)
    plain.say(f"From the next question on {_WHO_GUESSES[word]}.")


def switch(plain: PlainChat, argument: Argument) -> None:
    """The model, and another drafter behind the word ``drafter``."""
    name, _, drafter = argument.text.partition(" drafter ")
    if not name.strip():
        if served := names_served(plain.engine.capabilities.models):
            plain.say(served)
        known = plain.begin.models.names() if plain.begin.models else ()
        plain.say(f"Known models: {', '.join(known)}." if known else "No other models are known here.")
        if served:
            return
        raise argument.wrong()
    plain.switching.switch(name.strip(), drafter.strip())


def tell(plain: PlainChat, _: Argument) -> None:
    """Everything that is in force."""
    for name, value in plain.chat.settings.to_dict().items():
        shown = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
        plain.say(f"{name.replace('_', ' ')}: {shown}")
    plain.say(f"system prompt: {plain.chat.system or 'none'}")
    plain.say(f"preset: {plain.preset.name if plain.preset else 'none'}")


COMMANDS = (
    Command("temp", "temperature; 0 is greedy", set_temperature, "0–2"),
    Command(
        "block", "block size: 16 drafts 15 tokens and adds one; auto checks as many as pay off", set_block, "auto|2–16"
    ),
    Command("seed", "seed of the sampling noise", set_seed, "n"),
    Command(
        "system", "system prompt from the next question on; without words: which it is", set_system, "[text|@file|off]"
    ),
    Command(
        "preset",
        "a system prompt and settings under one name; without a name: which there are",
        set_preset,
        "[name|none]",
    ),
    Command("think", "let the model think first, from the next question on", think, "on|off"),
    Command("speculation", "who guesses, or the target alone, measured", speculate, "on|off|drafter|lookup"),
    Command(
        "model", "switch to another model: a name, folder, GGUF or URL; - goes back", switch, "name [drafter name]"
    ),
    Command("settings", "what is in force", tell),
)
