"""``dflash-chat sessions``: the conversations on this machine, for scripts and for people without the screen."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.sessions.archive import (
    SessionSummary,
    conversation_markdown,
    delete_session,
    find_session,
    open_session,
    reopen,
    reopen_latest,
)
from dflash_tui.core.sessions.search import conversations
from dflash_tui.core.sessions.sessions import Conversation, SessionLog
from dflash_tui.core.settings.decoding import of_flags, restored
from dflash_tui.core.text.counted import counted
from dflash_tui.core.text.harmless import in_line
from engine.commands import GenerationSettings

from ..flags.pair import typed_flags
from ..headless.output import StandardOutput
from ..problems import Problem
from ..terminal.saying import remark, say

NAME_WIDTH = 60


class _Sessions(click.Group):
    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if words[0] not in self.commands and not words[0].startswith("-"):
            hint = "dflash-chat sessions list WORDS looks for words, dflash-chat export ID writes a page or data."
            raise Problem(f"There is no command sessions {in_line(words[0])}.", hint)
        return super().resolve_command(context, words)


@click.group(cls=_Sessions, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.pass_context
def sessions(context: click.Context) -> int:
    """List, show and delete conversations. An ID may be cut short where it stays the only one."""
    return int(context.invoke(list_command)) if context.invoked_subcommand is None else ExitCode.OK


@sessions.command("list")
@click.argument("words", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def list_command(words: Sequence[str] = (), as_json: bool = False) -> int:
    """List conversations, the latest first; only those that have all WORDS in their name, questions or answers."""
    matching, unreadable = conversations(" ".join(words))
    for session in matching:
        say(_as_json(session) if as_json else _as_line(session))
    for problem in unreadable:
        remark(in_line(problem))
    if not matching and not as_json:
        remark("No conversation yet." if not words else "No conversation has these words.")
    return ExitCode.OK


@sessions.command("show")
@click.argument("id")
def show_command(id: str) -> int:
    """Print a conversation as Markdown; dflash-chat export makes a page of it, or data, with every round."""
    output = StandardOutput()
    output.write(conversation_markdown(_open(id)))
    output.close()
    return ExitCode.OK


@sessions.command("delete")
@click.argument("id")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
def delete_command(id: str, yes: bool) -> int:
    """Delete a conversation, after asking."""
    conversation = _open(id)
    if not yes:
        if not sys.stdin.isatty():
            raise Problem("Deleting needs a yes, and stdin is no terminal to ask at.", "Add --yes.")
        click.confirm(
            f"Delete “{conversation.name[:NAME_WIDTH]}” ({counted(len(conversation.turns), 'question')})?", abort=True
        )
    delete_session(conversation.path)
    remark(f"deleted {conversation.id}")
    return ExitCode.OK


def conversation_to_continue(latest: bool, id: str | None) -> tuple[Conversation, SessionLog] | None:
    """What ``--continue`` and ``--resume ID`` ask for; None without them. Raises ``ArchiveError``."""
    if not latest and not id:
        return None
    return reopen(find_session(id)) if id else reopen_latest()


def continued(settings: GenerationSettings, conversation: Conversation | None) -> GenerationSettings:
    """``settings``, those that were not typed as the conversation was left with."""
    if conversation is None:
        return settings
    return restored(settings, conversation.settings, of_flags(dict.fromkeys(typed_flags())))


def _open(id: str) -> Conversation:
    return open_session(find_session(id))


def _as_line(session: SessionSummary) -> str:
    when = datetime.fromtimestamp(session.changed).strftime("%Y-%m-%d %H:%M")
    return f"{session.id}  {when}  {len(session.questions):>3}  {in_line(session.name[:NAME_WIDTH])}"


def _as_json(session: SessionSummary) -> str:
    fields = {name: getattr(session, name) for name in ("created", "title", "questions", "target")}
    return json.dumps({"id": session.id, "path": str(session.path), **fields})
