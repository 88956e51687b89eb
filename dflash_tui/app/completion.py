"""What the prompt could become while it is typed: a slash command, from the table of actions, or a file behind an @."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflash_tui.core.attachments.mentions import completions
from dflash_tui.core.text.harmless import sanitise

from .actions.action import Action

if TYPE_CHECKING:
    from .screens.chat import ChatScreen


@dataclass(frozen=True, slots=True)
class Candidate:
    text: str
    """The prompt up to the cursor, once this is taken: all of a command, or the line with the file's name."""
    help: str = ""
    label: str = ""
    """In the list, where that isn't the text itself."""

    @property
    def shown(self) -> str:
        return self.label or self.text


def complete_file(line: str) -> list[Candidate]:
    """Candidates for a line whose last word begins with @: files and folders."""
    if "@" not in line:
        return []
    begun, found = line.rindex("@"), completions(line)
    if [text.rstrip() for text in found] == [line]:
        return []  # nothing is left to complete
    return [Candidate(text, label=sanitise(text[begun + 1 :].strip().strip('"'))) for text in found]


def complete(text: str, actions: Iterable[Action], screen: ChatScreen) -> list[Candidate]:
    """Candidates for a prompt, best first: commands, then their values. None for other or already complete text."""
    if not text.startswith("/") or text.startswith("//") or "\n" in text:
        return []
    name, blank, typed = text[1:].partition(" ")
    commands = [action for action in actions if action.slash]
    if blank:
        action = next((action for action in commands if action.slash == name), None)
        found = [Candidate(f"/{name} {value}") for value in _values(action, screen) if value.startswith(typed)]
    else:
        found = [
            Candidate(
                f"/{action.slash}{' ' if action.takes else ''}", f"{action.takes}  {screen.said(action.title)}".strip()
            )
            for action in commands
            if action.slash.startswith(name)
        ]
    return [] if [candidate.text.rstrip() for candidate in found] == [text.rstrip()] else found


def _values(action: Action | None, screen: ChatScreen) -> list[str]:
    """What can be written behind a command, where that can be listed."""
    if action is None:
        return []
    if action.choices is not None:
        return list(action.choices(screen))
    words = action.takes.strip("[]")
    return words.split("|") if "|" in words and " " not in words else []
