"""Commands that only lines need: they read out what a screen shows all the time."""

from __future__ import annotations

from dflash_tui.core.conversation.context import room_words
from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.desk.command import Command
from dflash_tui.core.desk.commands import COMMANDS as SHARED
from dflash_tui.core.desk.desk import Desk
from dflash_tui.core.desk.words import answer_facts


def help(desk: Desk, argument: Argument) -> None:
    name = argument.text.removeprefix("/")
    if name and name not in COMMANDS:
        raise SlashError(f"There is no command /{name}. /help lists them all.")
    for command in COMMANDS.values():
        if not name or command.slash == name:
            desk.face.say(command.usage)
    if not name:
        desk.face.say("@path in a question reads that file with it. Ctrl+C stops an answer, Ctrl+D leaves.")


def leave(_desk: Desk, _: Argument) -> None:
    raise EOFError


def show(desk: Desk, argument: Argument) -> None:
    """Read out the path, or one question with its answer."""
    exchanges = [desk.chosen(argument.text)] if argument.text else desk.chat.tree.path
    if not exchanges:
        raise SlashError("There is no question yet.")
    for exchange in exchanges:
        for text in answer_facts(desk.chat, exchange):
            desk.face.say(text)


def thought(desk: Desk, _: Argument) -> None:
    turn = desk.chat.reducer.turn
    text = turn.finished.thought.strip() if turn is not None and turn.finished is not None else ""
    if not text:
        raise SlashError("The newest answer came without a thought. /think on lets the model think first.")
    desk.face.say(text)


def version(desk: Desk, argument: Argument) -> None:
    """Go to another version of the newest answer that has some, or else question; ``/version 2`` is the second."""
    number, which = desk.turnable()
    index, count = desk.chat.tree.version_of(number, which)
    words = {"": index % count + 1, "next": index + 1, "back": index - 1}
    wanted = int(argument.text) if argument.text.isdecimal() else words.get(argument.text)
    if wanted is None:
        raise argument.wrong()
    desk.turn_over(number, which, wanted - index)


def settings(desk: Desk, _: Argument) -> None:
    """Say which settings and system prompt are in force."""
    for name, value in desk.chat.settings.to_dict().items():
        shown = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
        desk.face.say(f"{name.replace('_', ' ')}: {shown}")
    desk.face.say(f"system prompt: {desk.chat.system or 'none'}")


def context(desk: Desk, _: Argument) -> None:
    turn, limit = desk.chat.reducer.turn, desk.fit.limit
    used = turn.snapshot.context_length if turn is not None else 0
    if not limit:
        raise SlashError("How much the context holds is not known here.")
    if turn is not None and not used:
        raise SlashError(f"How much of the context is used is not known. It holds {limit:,} tokens.")
    desk.face.say(f"{used:,} of {limit:,} tokens are used: {room_words(used, limit)}.")


def lesson(desk: Desk, _: Argument) -> None:
    """Read the lesson out."""
    from dflash_tui.core.export.text import to_text
    from dflash_tui.core.lesson.document import document_of
    from dflash_tui.core.lesson.lesson import open_lesson

    desk.face.say(to_text(document_of(open_lesson())))


OWN = (
    Command("help", "Help", "this list, or one command of it", help, slash="help", takes="[command]"),
    Command("quit", "Quit", "leave; so does Ctrl+D", leave, slash="quit"),
    Command(
        "show",
        "Read out",
        "read the conversation out, or one question with its answer",
        show,
        slash="show",
        takes="[n]",
    ),
    Command(
        "thought",
        "Read the thought",
        "read out what the model thought before its newest answer",
        thought,
        slash="thought",
    ),
    Command(
        "version",
        "Another version",
        "go to another version of the newest question or answer that has some",
        version,
        slash="version",
        takes="[n|next|back]",
    ),
    Command("settings", "Settings", "what is in force", settings, slash="settings"),
    Command("lesson", "Lesson", "how it works, read out", lesson, slash="lesson"),
    Command("context", "Context", "how full the context is", context, slash="context"),
)

COMMANDS: dict[str, Command[Desk]] = {command.slash: command for command in (*OWN, *SHARED.values()) if command.slash}
"""The commands by the name that is typed, in the order of ``/help``."""
