"""Commands that bring back what was said: files, and the conversations on this machine."""

from __future__ import annotations

from ...conversation.slash import Argument, SlashError
from ...files.saving import save_text
from ...sessions.archive import (
    ArchiveError,
    conversation_markdown,
    delete_session,
    find_session,
    open_session,
)
from ..command import Command
from ..desk import Desk
from ..face import AskOption, Question
from ..views import FilesView, SessionsView


def show_files(desk: Desk, _: Argument) -> None:
    desk.face.show(FilesView(desk.chat))


def show_sessions(desk: Desk, argument: Argument) -> None:
    desk.face.show(SessionsView(desk.queue.log.path, argument.text))


def resume(desk: Desk, argument: Argument) -> None:
    if not argument.text:
        show_sessions(desk, argument)
        return
    try:
        path = find_session(argument.text, desk.queue.log.path.parent)
    except ArchiveError as error:
        raise SlashError(f"{error} /sessions lists them.") from None
    desk.resume(path)


def rename(desk: Desk, argument: Argument) -> None:
    title = " ".join(argument.text.split())
    if not title:
        raise argument.wrong()
    desk.queue.log.title(title)
    desk.face.say(f"This conversation is called {title}.")


def delete(desk: Desk, _: Argument) -> None:
    """Delete this conversation, once that is confirmed, and start another."""
    desk.require_idle()
    path = desk.queue.log.path
    if not desk.queue.log.started:
        raise SlashError("Nothing was said here yet. /sessions lists the others.")

    def chosen(way: str | None) -> None:
        if way == "yes":
            desk.new()
            delete_session(path)
            desk.face.say("The conversation is deleted.")

    ways = (AskOption("n", "no", "no; it is kept"), AskOption("y", "yes", "delete it"))
    text = "Delete this conversation, with everything in it?"
    desk.face.ask(Question("delete this?", text, ways, "It is kept."), chosen)


def write_markdown(desk: Desk, argument: Argument) -> None:
    """Write the conversation up to now, as its file has it, to a Markdown file."""
    if not desk.queue.log.started:
        raise SlashError("Nothing was said here yet.")
    conversation = open_session(desk.queue.log.path)
    name = argument.text or f"{conversation.id}.md"
    desk.face.saved([save_text(conversation_markdown(conversation), desk.out_dir, name)])


COMMANDS = (
    Command(
        "unfold",
        "Files and pastes",
        "shows what is folded: files, pastes",
        show_files,
        "alt+o",
        "files",
        priority=True,
    ),
    Command(
        "sessions",
        "Older chats",
        "older conversations, or those with these words",
        show_sessions,
        "ctrl+o",
        "sessions",
        "[words]",
        priority=True,
    ),
    Command("resume", "Resume a chat", "go on with an older conversation", resume, slash="resume", takes="[id]"),
    Command("rename", "Name this chat", "give this conversation a name", rename, slash="rename", takes="name"),
    Command("delete", "Delete this chat", "delete this conversation, after asking", delete, slash="delete"),
    Command(
        "markdown",
        "Save as Markdown",
        "write this conversation to a Markdown file",
        write_markdown,
        slash="markdown",
        takes="[name]",
    ),
)
