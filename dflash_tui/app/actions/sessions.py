"""Actions that bring back what was said before: conversations, and questions."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.files.saving import save_text
from dflash_tui.core.sessions.archive import (
    ArchiveError,
    SessionSummary,
    conversation_markdown,
    delete_session,
    find_session,
    open_session,
)

from ..notices import tell_saved
from ..screens.picker import SearchScreen
from ..screens.sessions import DeleteScreen, SessionsScreen
from ..widgets.prompt import Prompt
from .action import Action

if TYPE_CHECKING:
    from dflash_tui.core.sessions.search import Hit

    from ..screens.chat import ChatScreen

MAX_UNFOLDED = 32 * 1024
"""Characters of a prompt whose pastes are shown. Each key in a longer one would take a noticeable while."""


def search_questions(screen: ChatScreen, _: Argument) -> None:
    prompt = screen.query_one(Prompt)

    def take(question: str | None) -> None:
        if question is not None:
            prompt.put_aside()
            prompt.fill(question)

    screen.app.push_screen(SearchScreen(prompt.questions), take)


def pick_session(screen: ChatScreen, _: Argument) -> None:
    log = screen.queue.log

    def take(session: SessionSummary | None) -> None:
        if session is not None:
            _resume(screen, session.path)

    screen.app.push_screen(SessionsScreen(log.path.parent, log.path), take)


def resume(screen: ChatScreen, argument: Argument) -> None:
    if not argument.text:
        pick_session(screen, argument)
        return
    try:
        path = find_session(argument.text, screen.queue.log.path.parent)
    except ArchiveError as error:
        raise SlashError(f"{error} Ctrl+O lists them.") from None
    _resume(screen, path)


def _resume(screen: ChatScreen, path: Path) -> None:
    try:
        screen.talk.resume(path)
    except (SlashError, ArchiveError) as error:
        screen.notify(str(error), severity="error", timeout=6, markup=False)


def find(screen: ChatScreen, argument: Argument) -> None:
    """In every conversation, this one among them."""
    from ..screens.find import FindScreen  # the first frame needs no database

    log = screen.queue.log

    def take(hit: Hit | None) -> None:
        if hit is not None:
            _open_at(screen, hit)

    screen.app.clear_notifications()  # they would lie over the list
    screen.app.push_screen(FindScreen(log.path.parent, argument.text), take)


def _open_at(screen: ChatScreen, hit: Hit) -> None:
    if hit.path != screen.queue.log.path:
        _resume(screen, hit.path)
    if hit.path == screen.queue.log.path and hit.turn:
        screen.go_to(lambda: screen.talk.show_place(hit.turn))


def rename(screen: ChatScreen, argument: Argument) -> None:
    title = " ".join(argument.text.split())
    if not title:
        raise argument.wrong()
    screen.queue.log.title(title)
    screen.notify(f"This conversation is called “{title}”.", timeout=3, markup=False)


def delete(screen: ChatScreen, argument: Argument) -> None:
    """Delete this conversation, once that is confirmed, and start another."""
    screen.talk.require_idle()
    path = screen.queue.log.path
    if not screen.queue.log.started:
        raise SlashError("Nothing was said here yet. Ctrl+O lists the others.")

    def take(yes: str | None) -> None:
        if not yes:
            return
        screen.action_act("new")
        try:
            delete_session(path)
        except ArchiveError as error:
            screen.notify(f"{error} {error.hint}", severity="error", markup=False)
        else:
            screen.notify("The conversation is deleted.", timeout=3)

    screen.app.push_screen(DeleteScreen("this conversation, with everything in it"), take)


def write_markdown(screen: ChatScreen, argument: Argument) -> None:
    """The conversation up to now, from its file: what a reader finds later."""
    if not screen.queue.log.started:
        raise SlashError("Nothing was said here yet.")

    def save() -> Path:
        conversation = open_session(screen.queue.log.path)
        name = argument.text or f"{conversation.id}.md"
        return save_text(conversation_markdown(conversation), screen.out_dir, name)

    tell_saved(screen, save)


def unfold(screen: ChatScreen, _: Argument) -> None:
    """Pastes in the prompt, or else what is folded in the transcript."""
    prompt = screen.query_one(Prompt)
    if not prompt.folds:
        screen.talk.unfold()
        return
    if len(prompt.unfolded) > MAX_UNFOLDED:
        raise SlashError(f"That has over {MAX_UNFOLDED:,} characters. /editor opens it in $EDITOR.")
    prompt.unfold()


def edit_outside(screen: ChatScreen, _: Argument) -> None:
    """The prompt in ``$VISUAL`` or ``$EDITOR``; the chat goes on behind it."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise SlashError("Set EDITOR to the editor you like, such as EDITOR=nano.")
    prompt = screen.query_one(Prompt)
    with tempfile.TemporaryDirectory(prefix="dflash-chat-") as folder:
        file = Path(folder) / "question.md"
        file.write_text(prompt.unfolded, encoding="utf-8")
        try:
            with screen.app.suspend():
                done = subprocess.run([*shlex.split(editor), str(file)])
            text = file.read_text(encoding="utf-8", errors="replace")
        except SuspendNotSupported:
            raise SlashError("An editor needs a terminal of its own, which a browser has not.") from None
        except (OSError, ValueError) as error:
            raise SlashError(f"{editor} could not be used: {error}") from None
    if done.returncode == 0:
        prompt.fill(text.rstrip("\n"))


ACTIONS = (
    Action("search", "search the questions asked before", search_questions, "ctrl+r", priority=True),
    Action("unfold", "show what is folded: pastes, files, output", unfold, "alt+o", "files", priority=True),
    Action("editor", "write the question in $EDITOR", edit_outside, "alt+e", "editor", priority=True),
    Action("sessions", "conversations: resume, rename, delete", pick_session, "ctrl+o", "sessions", priority=True),
    Action("find", "search everything that was ever said", find, "alt+w", "find", "[words]", priority=True),
    Action("resume", "go on with an older conversation", resume, slash="resume", takes="[id]"),
    Action("rename", "give this conversation a name", rename, slash="rename", takes="name"),
    Action("delete", "delete this conversation, after asking", delete, slash="delete"),
    Action("markdown", "write this conversation to a Markdown file", write_markdown, slash="markdown", takes="[name]"),
)
