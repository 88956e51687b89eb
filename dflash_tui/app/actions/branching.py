"""Actions on the tree of a conversation: ask again, edit, go to a version, name a branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dflash_tui.core.conversation.again import TAKES, parse_again
from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.conversation.tree import ROOT

from .action import Action

if TYPE_CHECKING:
    from dflash_tui.core.conversation.chat import Exchange
    from dflash_tui.core.conversation.tree import Outlined
    from dflash_tui.core.text.spans import Spans

    from ..screens.chat import ChatScreen
    from ..screens.tree import Wish

VERSIONS = "the version before, or behind, of the newest question or answer that has some"


def retry(screen: ChatScreen, argument: Argument) -> None:
    """The same seed would give the same answer, so without settings the next one is used; greedy decoding has none."""
    screen.talk.require_idle()
    again = parse_again(argument.text, screen.chat.settings)
    for feature in again.features:
        screen.talk.require(feature)
    earlier = screen.talk.chosen(again.which)
    if again.drafter:
        screen.switching.switch("", again.drafter)  # the question waits for it
    if again.settings is None and screen.chat.settings.temperature == 0:
        if earlier.is_whole:
            screen.notify("At temperature 0 the same question has the same answer; /temp 0.7 lets it vary.", timeout=6)
    elif again.settings is None and screen.source.capabilities.can("seed"):
        screen.chat.reseed(screen.chat.next_seed(earlier.number))
    screen.talk.ask_again(earlier.number, again.settings)


def edit(screen: ChatScreen, argument: Argument) -> None:
    screen.talk.edit(screen.talk.chosen(argument.text).number)
    screen.notify("Enter asks it as a new version; Esc leaves everything as it is.", timeout=4)


def version_back(screen: ChatScreen, _: Argument) -> None:
    screen.talk.turn_over(*screen.talk.turnable(-1), -1)


def version_forward(screen: ChatScreen, _: Argument) -> None:
    screen.talk.turn_over(*screen.talk.turnable(1), 1)


def go(screen: ChatScreen, argument: Argument) -> None:
    """To where the next question will follow that one; 0 is the beginning."""
    if not argument.text:
        raise argument.wrong()
    screen.talk.go(ROOT if argument.text == str(ROOT) else screen.talk.chosen(argument.text).number)


def show_tree(screen: ChatScreen, argument: Argument) -> None:
    """The whole of it; words behind the command are looked for."""
    from ..screens.tree import TreeScreen  # the first frame needs neither this nor the comparison

    if not screen.chat.tree:
        raise SlashError("There is no question yet.")

    def go_there(row: Outlined[Exchange] | None) -> None:
        if row is not None:
            screen.go_to(lambda: screen.talk.go(row.node.number))

    def take(wish: Wish) -> None:
        what, number = wish
        wishes: dict[str, Callable[[], None]] = {
            "edit": lambda: edit(screen, Argument(str(number))),
            "retry": lambda: retry(screen, Argument(str(number))),
            "compare": lambda: _compare(screen, number, None),
        }
        screen.go_to(wishes[what])

    screen.app.clear_notifications()  # they would lie over the list
    screen.app.push_screen(TreeScreen(screen.chat.tree, screen.talk.name, take, argument.text), go_there)


def compare(screen: ChatScreen, argument: Argument) -> None:
    """Two questions by number; with one, it and the version before it; with none, the newest that has versions."""
    words = argument.text.split()
    if len(words) > 2:
        raise argument.wrong()
    if words:
        first, *others = (screen.talk.chosen(word).number for word in words)
        _compare(screen, first, others[0] if others else None)
        return
    number, part = screen.talk.turnable()
    beside = screen.chat.tree.beside(number, part, -1) or screen.chat.tree.beside(number, part, 1)
    _compare(screen, number, beside.number if beside else None)


def _compare(screen: ChatScreen, number: int, other: int | None) -> None:
    """A question beside another, or beside a version of its answer, or else of itself."""
    from ..screens.compare import CompareScreen

    tree = screen.chat.tree
    versions = tree.versions(number, "answer")
    if len(versions) < 2:
        versions = tree.versions(number, "question")
    if other is not None and other not in [each.number for each in versions]:
        versions = sorted({number: tree[number], other: tree[other]}.values(), key=lambda each: each.number)
    if len(versions) < 2:
        raise SlashError(f"Question {number} has one version: /retry block 4 makes another.")
    places = [each.number for each in versions]
    mine = places.index(number)
    beside = places.index(other) if other is not None else max(mine - 1, 0) or int(mine == 0)
    left, right = sorted((mine, beside))

    def told(which: int) -> Spans | None:
        state = screen.chat.state_of(which)
        return state.told() if state is not None else None

    def take(chosen: int | None) -> None:
        if chosen is not None:
            screen.go_to(lambda: screen.talk.go(chosen, below=True))

    screen.app.push_screen(CompareScreen(versions, (left, right), told), take)


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
    Action("version-back", VERSIONS, version_back, "alt+j", priority=True),
    Action("version-forward", VERSIONS, version_forward, "alt+k", priority=True),
    Action(
        "tree",
        "every version of this conversation, and the way to each",
        show_tree,
        "f9,alt+g",
        "tree",
        "[words]",
        priority=True,
    ),
    Action(
        "compare",
        "two versions side by side, by their numbers in /tree",
        compare,
        "f10,alt+c",
        "compare",
        "[n] [m]",
        priority=True,
    ),
    Action("go", "go on from another answer, by its number in /tree or its name", go, slash="go", takes="n|name"),
    Action("name", "name this branch, from here on", name, slash="name", takes="[name]"),
)
