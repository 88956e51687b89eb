"""Slash commands: ``/temp 0.7`` typed as a prompt."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from engine.commands import AUTO

from ..settings.decoding import Setting

LEAVING = {"quit", "exit", "logout", ":q", ":q!", ":wq", ":x"}
"""What people type who want to leave."""
ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("exit", "bye", "q"), "/quit leaves."),
    **dict.fromkeys(("clear", "reset", "restart"), "/new starts a new chat."),
    **dict.fromkeys(
        ("settings", "set", "options", "config"),
        "/temp, /block, /seed, /system and /think set one thing each; config.toml keeps them.",
    ),
    **dict.fromkeys(("undo", "back"), "/edit asks your last question anew, /retry its answer; /go goes back to one."),
    **dict.fromkeys(("load", "open-session", "history"), "/sessions lists earlier conversations, /resume goes on."),
    **dict.fromkeys(("regenerate", "again"), "/retry answers once more."),
    **dict.fromkeys(("title",), "/rename gives the conversation a name, /name the branch from here on."),
    **dict.fromkeys(("stop", "cancel", "abort"), "Ctrl+C stops an answer; on the screen, Esc does, too."),
    **dict.fromkeys(("models", "list", "ls"), "/model and a name goes on with it; dflash-chat help models has names."),
    **dict.fromkeys(("search", "find"), "/sessions and words looks into every conversation, /tree into this."),
    **dict.fromkeys(("trace", "record"), "A chat's own file is its recording: dflash-chat replay plays it."),
    **dict.fromkeys(("commands", "?"), "/help lists what there is."),
    **dict.fromkeys(
        ("theme", "gauges", "rendered", "lens", "teach", "present", "predict", "pace", "replay"),
        "That is something to look at: dflash-chat without --plain shows it.",
    ),
}
"""What other programs call something that has another name here, and where that is."""
LIKENESS = 0.75
"""From which on a word is taken for a mistyped command, as ``difflib`` counts: /thmee for /theme, but not /lens for
/files."""


class SlashError(ValueError):
    """A command that can't be done, in words for people."""


@dataclass(frozen=True, slots=True)
class Argument:
    """What stands behind a command's name."""

    text: str
    usage: str = ""
    """The command, what it takes and what it does, for the message when this is something else."""

    def integer(self) -> int:
        return int(self._number(int))

    def number(self, **words: float) -> float:
        """The argument as a number; each of ``words`` may be typed for one, such as ``greedy=0.0``."""
        return words[self.text] if self.text in words else self._number(float)

    def switch(self) -> bool:
        return self.choice("on", "off") == "on"

    def choice(self, *words: str) -> str:
        """One of ``words``, as it was typed."""
        if self.text not in words:
            raise self.wrong()
        return self.text

    def setting(self, setting: Setting) -> Any:
        """The argument as a value of ``setting``; ``SlashError`` where it is none."""
        match setting.kind:
            case "switch":
                return self.switch()
            case "choice":
                return self.choice(*setting.choices)
            case "number":
                return self.number(greedy=0.0) if setting.name == "temperature" else self.number()
            case "block size" if self.text == AUTO:
                return AUTO
            case _:
                return self.integer()

    def _number(self, convert: type[int] | type[float]) -> float:
        try:
            return convert(self.text)
        except ValueError:
            raise self.wrong() from None

    def wrong(self) -> SlashError:
        """The error to raise where the command can't take what was typed, or takes more than nothing."""
        return SlashError(f"{self.usage}, not “{self.text}”." if self.text else f"{self.usage}.")


@dataclass(frozen=True, slots=True)
class SlashCommand:
    name: str
    argument: str


@dataclass(frozen=True, slots=True)
class WaysOut:
    """A front end's own sentences: how to leave it (for who typed "quit"), and where its commands are listed."""

    leave: str
    help: str


def parse_slash(text: str, known: Collection[str], ways: WaysOut) -> SlashCommand | str:
    """A command, or the prompt to send: ``//text`` escapes to ``/text``. Raises ``SlashError`` for an unknown one, and
    for words that are meant to leave."""
    if text.strip().casefold() in LEAVING:
        raise SlashError(f"{ways.leave} A question about {text.strip()} needs more words.")
    if text.startswith("//"):
        return text[1:]
    if not text.startswith("/"):
        return text
    name, _, argument = text[1:].partition(" ")
    if name not in known:
        near = get_close_matches(name, known, 1, LIKENESS)
        hint = ELSEWHERE.get(name.casefold()) or (f"Did you mean /{near[0]}?" if near else ways.help)
        raise SlashError(f"There is no command /{name}. {hint} A prompt that begins with / is written //")
    return SlashCommand(name, argument.strip())
