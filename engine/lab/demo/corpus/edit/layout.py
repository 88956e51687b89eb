"""How a file stands in a prompt: under its name in a fence, bare, before or behind the wish, or a turn earlier."""

from __future__ import annotations

import random

from engine.lab.demo.corpus.edit.content import File
from engine.lab.demo.corpus.wording import phrase, pick

ATTACHED = "File {name}:\n{fence}"
"""How the chat hands over a file: before the question, in a fence without a language."""
ATTACHED_SHARE = 0.45
_NAMED = (
    "`{name}`:\n{fence}", "`{name}`:\n{fence}", "`{name}`:\n\n{fence}", "{name}:\n{fence}", "{name}\n{fence}",
    "File `{name}`:\n{fence}", "File: {name}\n\n{fence}", "# {name}\n{fence}", "--- {name} ---\n{fence}",
    "[Here is|This is] `{name}`:\n\n{fence}", "**{name}**\n\n{fence}", "`{name}` ({count} lines):\n{fence}",
)  # fmt: skip
_UNNAMED = ("{fence}", "[Here is|This is] [my file|the file|what I have|the text]:\n\n{fence}", "{text}", "{text}")
_HANDED_OVER = (
    "I see `{name}`. What shall I change?", "That is `{name}`, {count} lines. What would you like to do with it?",
    "Thank you, I have read `{name}`. What next?",
)  # fmt: skip


def fence(file: File, info: str | None = None) -> str:
    return f"```{file.language if info is None else info}\n{file.text}\n```"


def shown(rng: random.Random, file: File, named: bool) -> str:
    """The file as a part of a prompt."""
    count = file.text.count("\n") + 1
    chance = rng.random()
    info = None if chance < 0.75 else "" if chance < 0.9 or not file.language else f"{file.language} {file.name}"
    form = phrase(rng, pick(rng, _NAMED if named else _UNNAMED))
    return form.format(name=file.name, fence=fence(file, info), text=file.text, count=count)


def attached(file: File) -> str:
    return ATTACHED.format(name=file.name, fence=fence(file, ""))


def prompt_of(rng: random.Random, wish: str, files: list[File], named: bool) -> str:
    """Wish and files: as the chat puts them, or in either order as people paste them."""
    if named and rng.random() < ATTACHED_SHARE:
        return "\n\n".join([*map(attached, files), _mentioning(rng, wish, files[-1])])
    parts = [shown(rng, file, named) for file in files]
    if rng.random() < 0.5:
        return "\n\n".join([*parts, wish])
    return "\n\n".join([wish, *parts])


def _mentioning(rng: random.Random, wish: str, file: File) -> str:
    """The wish as it is typed in the chat, where @ names a file."""
    if file.name in wish:
        return wish.replace(file.name, f"@{file.name}") if rng.random() < 0.7 else wish
    if rng.random() < 0.4:
        return wish
    return f"@{file.name} {wish}" if rng.random() < 0.5 else f"{wish} @{file.name}"


def handed_over(rng: random.Random, files: list[File]) -> tuple[str, str]:
    """An exchange that gives the files and wishes for nothing yet."""
    last = files[-1]
    reply = pick(rng, _HANDED_OVER).format(name=last.name, count=last.text.count("\n") + 1)
    if rng.random() < ATTACHED_SHARE:
        return "\n\n".join([*map(attached, files), pick(rng, (f"@{last.name}", "Look at this file."))]), reply
    return "\n\n".join(shown(rng, file, named=True) for file in files), reply
