"""Actions on the tree of a conversation: ask again, edit, go to a version, name a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_tui.core.conversation.again import TAKES, parse_again
from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.conversation.tree import ROOT

from .action import Action

if TYPE_CHECKING:
    from ..screens.chat import ChatScreen

VERSIONS = "the version before, or behind, of the newest question or answer that has some"


def retry(screen: ChatScreen, argument: Argument) -> None:
    """The same seed would give the same answer, so without settings the next one is used; greedy decoding has none."""
    screen.talk.require_idle()
    again = parse_again(argument.text, screen.chat.settings)
    for feature in again.features:
        screen.talk.require(feature)
    number = screen.talk.chosen(again.which).number
    if again.settings is None and screen.chat.settings.temperature == 0:
        screen.notify("At temperature 0 the same question has the same answer; /temp 0.7 lets it vary.", timeout=6)
    elif again.settings is None and screen.source.capabilities.can("seed"):
        screen.chat.reseed(screen.chat.next_seed(number))
    screen.talk.ask_again(number, again.settings)


def edit(screen: ChatScreen, argument: Argument) -> None:
    screen.talk.edit(screen.talk.chosen(argument.text).number)
    screen.notify("Enter asks it as a new version; Esc leaves everything as it is.", timeout=4)


def version_back(screen: ChatScreen, _: Argument) -> None:
    screen.talk.turn_over(*screen.talk.turnable(), -1)


def version_forward(screen: ChatScreen, _: Argument) -> None:
    screen.talk.turn_over(*screen.talk.turnable(), 1)


def go(screen: ChatScreen, argument: Argument) -> None:
    """To where the next question will follow that one; 0 is the beginning."""
    if not argument.text:
        raise argument.wrong()
    screen.talk.go(ROOT if argument.text == str(ROOT) else screen.talk.chosen(argument.text).number)


def name(screen: ChatScreen, argument: Argument) -> None:
    """The branch that the newest question of the path begins, from here on; nothing takes the name away."""
    newest = screen.chat.newest
    if newest is None:
        raise SlashError("There is no question yet: /rename gives the whole conversation a name.")
    text = " ".join(argument.text.split())
    screen.talk.name(newest.number, text)
    words = (
        f"From here on this branch is called “{text}”; /go {text} comes back."
        if text
        else "The branch has no name now."
    )
    screen.notify(words, timeout=4, markup=False)


ACTIONS = (
    Action(
        "retry", "ask a question again, maybe with other settings; both answers stay", retry, slash="retry", takes=TAKES
    ),
    Action("edit", "change a question and ask it as a new version; Esc undoes it", edit, slash="edit", takes="[n]"),
    Action("version-back", VERSIONS, version_back, "alt+comma", priority=True),
    Action("version-forward", VERSIONS, version_forward, "alt+full_stop", priority=True),
    Action("go", "go on from another answer, by number or name", go, slash="go", takes="n|name"),
    Action("name", "name this branch, from here on", name, slash="name", takes="[name]"),
)
