"""Commands on the tree of a conversation: ask again, edit, go to a version, name a branch."""

from __future__ import annotations

from ...conversation.retry import TAKES, parse_retry
from ...conversation.slash import Argument, SlashError
from ...conversation.tree import ROOT
from ..command import Command
from ..desk import Desk
from ..views import TreeView


def retry(desk: Desk, argument: Argument) -> None:
    desk.require_idle()
    desk.ask_again(parse_retry(argument.text, desk.chat.settings))


def edit(desk: Desk, argument: Argument) -> None:
    """Change a question: ``/edit``, ``/edit 2``, ``/edit 2 other words`` and ``/edit other words``."""
    first, _, rest = argument.text.partition(" ")
    named = desk.chat.tree.find(argument.text)
    if first.removeprefix("#").isdecimal():
        number, text = desk.chosen(first).number, rest.strip()
    else:
        number, text = (named.number, "") if named else (desk.chosen("").number, argument.text)
    if text:
        desk.require_idle()
        desk.ask(*desk.files.take(text, text), version_of=number)
    else:
        desk.edit(number)


def show_tree(desk: Desk, argument: Argument) -> None:
    if not desk.chat.tree:
        raise SlashError("There is no question yet.")
    desk.face.show(TreeView(desk.chat, argument.text))


def go(desk: Desk, argument: Argument) -> None:
    """End the path at the question that is named, so that the next one follows it; 0 is the beginning."""
    if not argument.text:
        raise argument.wrong()
    desk.go(ROOT if argument.text == str(ROOT) else desk.chosen(argument.text).number)


def name(desk: Desk, argument: Argument) -> None:
    """Name the branch that begins with the newest question of the path; without words its name is taken away."""
    newest = desk.chat.newest
    if newest is None:
        raise SlashError("There is no question yet: /rename gives the whole conversation a name.")
    text = " ".join(argument.text.split())
    desk.name(newest.number, text)
    named = f"From here on this branch is called {text}; /go {text} comes back."
    desk.face.say(named if text else "The branch has no name.")


COMMANDS = (
    Command(
        "retry", "Ask again", "ask again, maybe set otherwise; both answers stay", retry, slash="retry", takes=TAKES
    ),
    Command(
        "edit",
        "Change a question",
        "change a question and ask it as a new version",
        edit,
        slash="edit",
        takes="[n] [text]",
    ),
    Command(
        "tree",
        "All versions",
        "all versions of this conversation; go to any",
        show_tree,
        "f9,alt+g",
        "tree",
        "[words]",
        priority=True,
    ),
    Command("go", "Go to another answer", "go on from another answer of /tree", go, slash="go", takes="n|name"),
    Command("name", "Name this branch", "name this branch, from here on", name, slash="name", takes="[name]"),
)
