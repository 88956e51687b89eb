"""What the prompt could become while it is typed: a slash command, from the table of actions, or a file behind an @."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dflash_tui.core.attachments.mentions import completions
from dflash_tui.core.desk.command import Command, Host
from dflash_tui.core.text.harmless import sanitise

NO_KEYS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Candidate:
    text: str
    """The prompt up to the cursor, once this is taken: all of a command, or the line with the file's name."""
    help: str = ""
    takes: str = ""
    """The arguments a command takes, such as ``[N]``; shown where there is room."""
    key: str = ""
    """The key that does the same, such as ``F4``; empty when there is none."""
    label: str = ""
    """What the list shows instead of ``text``; empty to show ``text``."""

    @property
    def shown(self) -> str:
        return self.label or self.text


def complete_file(line: str) -> list[Candidate]:
    """Candidates for a line whose last word begins with @: files and folders."""
    if "@" not in line:
        return []
    begun, candidates = line.rindex("@"), completions(line)
    if [text.rstrip() for text in candidates] == [line]:
        return []  # nothing is left to complete
    return [Candidate(text, label=sanitise(text[begun + 1 :].strip().strip('"'))) for text in candidates]


def complete(
    text: str,
    commands: Iterable[Command[Host]],
    host: Host,
    keys: Mapping[str, str] = NO_KEYS,
) -> list[Candidate]:
    """Candidates for a prompt, best first: commands, then their values. None for other or already complete text.
    ``keys``: by a command's id."""
    if not text.startswith("/") or text.startswith("//") or "\n" in text:
        return []
    name, blank, typed = text[1:].partition(" ")
    known = [command for command in commands if command.slash]
    if blank:
        values = next((command.values(host) for command in known if command.slash == name), [])
        candidates = [Candidate(f"/{name} {value}") for value in values if value.startswith(typed)]
    else:
        candidates = [
            Candidate(
                f"/{command.slash}{' ' if command.takes else ''}",
                command.title,
                command.takes,
                keys.get(command.id, ""),
            )
            for command in known
            if command.slash.startswith(name)
        ]
    return [] if [candidate.text.rstrip() for candidate in candidates] == [text.rstrip()] else candidates
