"""Slash commands: ``/temp 0.7`` typed as a prompt."""

from __future__ import annotations

from dataclasses import dataclass

COMMANDS: dict[str, tuple[str, str]] = {
    "help": ("", "keys and commands"),
    "new": ("", "start a new chat"),
    "retry": ("", "take the newest answer back and ask again"),
    "edit": ("", "take the newest question back into the prompt"),
    "think": ("on|off", "let the model think first, from the next question on"),
    "save": ("[n]", "save code block n of the newest answer, else the last"),
    "temp": ("0…2", "temperature; 0 is greedy"),
    "block": ("2…16", "block size: 16 drafts 15 tokens and adds one"),
    "seed": ("n", "seed of the sampling noise"),
    "system": ("text", "system prompt from the next question on; empty: none"),
    "stats": ("", "numbers of the last turn"),
    "theme": ("[name]", "change the colours; without a name: which there are"),
    "quit": ("", "leave"),
}
"""Name: (what it takes, what it does)."""


class SlashError(ValueError):
    """A command that can't be done, in words for people."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    name: str
    argument: str

    def integer(self) -> int:
        return int(self._number(int))

    def number(self) -> float:
        return self._number(float)

    def switch(self) -> bool:
        if self.argument not in ("on", "off"):
            raise self._wrong()
        return self.argument == "on"

    def _number(self, convert: type[int] | type[float]) -> float:
        try:
            return convert(self.argument)
        except ValueError:
            raise self._wrong() from None

    def _wrong(self) -> SlashError:
        takes, does = COMMANDS[self.name]
        return SlashError(f"/{self.name} takes {takes} ({does}), not “{self.argument}”")


def parse_slash(text: str) -> SlashCommand | str:
    """A command, or the prompt to send: ``//text`` escapes to ``/text``. Raises ``SlashError`` for an unknown one."""
    if text.startswith("//"):
        return text[1:]
    if not text.startswith("/"):
        return text
    name, _, argument = text[1:].partition(" ")
    if name not in COMMANDS:
        known = " ".join(f"/{command}" for command in COMMANDS)
        raise SlashError(f"there is no command /{name}. Known: {known}. A prompt that begins with / is written //")
    return SlashCommand(name, argument.strip())
