"""Commands on other conversations: find, resume, name, delete."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from dflash_tui.core.attachments.attachment import counted
from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.sessions.archive import delete_session, find_session, list_sessions, reopen
from dflash_tui.core.sessions.restoring import restored

from .command import Command
from .words import short

if TYPE_CHECKING:
    from .chat import PlainChat

LISTED = 20
EXCERPT = 100
"""Characters of a place where something was said."""


def sessions(plain: PlainChat, argument: Argument) -> None:
    """The latest first; with words those that have them."""
    found = [each for each in list_sessions(plain.log.path.parent) if each.matches(argument.text)]
    if not found:
        raise SlashError("No conversation has these words." if argument.text else "No conversation yet.")
    for each in found[:LISTED]:
        here = ", this one" if each.path == plain.log.path else ""
        plain.say(f"{each.id}{here}, {counted(len(each.questions), 'question')}: {short(each.name)}")
    if len(found) > LISTED:
        plain.say(f"{len(found) - LISTED} more: /sessions and words of theirs narrows the list.")
    plain.say("/resume and an id, which may be cut short, goes on with one.")


def find(plain: PlainChat, argument: Argument) -> None:
    """In every conversation, this one among them."""
    from dflash_tui.core.sessions.search import Search, excerpt  # nothing else needs a database

    if not argument.text:
        raise argument.wrong()
    with closing(Search(plain.log.path.parent)) as search:
        found = list(search.find(argument.text, LISTED + 1))
    if not found:
        raise SlashError("Nothing was said with these words.")
    for hit in found[:LISTED]:
        where = "this conversation" if hit.path == plain.log.path else hit.id
        place = f"{hit.part} {hit.turn}" if hit.turn else "its name"
        plain.say(f"{where}, {place}: {excerpt(hit.text, argument.text, EXCERPT)[0]}")
    if len(found) > LISTED:
        plain.say("There are more: further words narrow the list, and dflash-chat sessions find lists them all.")
    plain.say("/go and a number goes there in this conversation, /resume and an id opens another.")


def resume(plain: PlainChat, argument: Argument) -> None:
    if not argument.text:
        sessions(plain, argument)
        return
    path = find_session(argument.text, plain.log.path.parent)
    if path == plain.log.path:
        raise SlashError("That is this conversation.")
    conversation, log = reopen(path)
    plain.renew(log)
    plain.chat.settings = restored(plain.chat.settings, conversation.settings)
    plain.show_resumed(conversation)


def rename(plain: PlainChat, argument: Argument) -> None:
    title = " ".join(argument.text.split())
    if not title:
        raise argument.wrong()
    plain.log.title(title)
    plain.say(f"This conversation is called {title}.")


def delete(plain: PlainChat, _: Argument) -> None:
    path = plain.log.path
    if not plain.log.started:
        raise SlashError("Nothing was said here yet. /sessions lists the others.")
    plain.confirm("Delete this conversation, with everything in it?", "It is kept.")
    plain.take("/new")
    delete_session(path)
    plain.say("The conversation is deleted.")


COMMANDS = (
    Command("sessions", "older conversations, the latest first; with words: those that have them", sessions, "[words]"),
    Command("find", "search everything that was ever said", find, "[words]"),
    Command("resume", "go on with an older conversation", resume, "[id]"),
    Command("rename", "give this conversation a name", rename, "name"),
    Command("delete", "delete this conversation, after asking", delete),
)
