"""What a slash command that is being typed could become, from the table of actions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .actions.action import Action

if TYPE_CHECKING:
    from .screens.chat import ChatScreen


@dataclass(frozen=True, slots=True)
class Candidate:
    text: str
    """The whole prompt, once this is taken."""
    help: str = ""


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
            Candidate(f"/{action.slash}{' ' if action.takes else ''}", f"{action.takes}  {action.title}".strip())
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
