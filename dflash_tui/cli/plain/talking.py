"""Commands on the conversation: ask again, edit, go to a version, read it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_tui.core.attachments.attachment import counted
from dflash_tui.core.conversation.again import TAKES, parse_again
from dflash_tui.core.conversation.chat import Exchange
from dflash_tui.core.conversation.comparing import compare as compared
from dflash_tui.core.conversation.comparing import parting
from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.conversation.tree import ROOT, Part

from .command import Command
from .words import outlined, place_of, short, told

if TYPE_CHECKING:
    from .chat import PlainChat


def help(plain: PlainChat, argument: Argument) -> None:
    name = argument.text.removeprefix("/")
    if name and name not in plain.commands:
        raise SlashError(f"There is no command /{name}. /help lists them all.")
    for command in plain.commands.values():
        if not name or command.name == name:
            plain.say(command.usage)
    if not name:
        plain.say("@path in a question reads that file with it. Ctrl+C stops an answer, Ctrl+D leaves.")


def new(plain: PlainChat, _: Argument) -> None:
    plain.renew()
    plain.chat.new()
    plain.say("A new chat.")


def leave(_plain: PlainChat, _: Argument) -> None:
    raise EOFError


def retry(plain: PlainChat, argument: Argument) -> None:
    """The same seed would give the same answer, so without settings the next one is used; greedy decoding has none."""
    again = parse_again(argument.text, plain.chat.settings)
    if again.drafter:
        raise SlashError("Another drafter needs another start: dflash-chat --plain --draft FOLDER --continue")
    for feature in again.features:
        plain.require(feature)
    earlier = chosen(plain, again.which)
    if again.settings is None and plain.chat.settings.temperature == 0:
        if earlier.is_whole:
            plain.say("At temperature 0 the same question has the same answer; /temp 0.7 lets it vary.")
    elif again.settings is None and plain.engine.capabilities.can("seed"):
        plain.chat.reseed(plain.chat.next_seed(earlier.number))
    plain.asking.ask_again(earlier.number, again.settings)


def edit(plain: PlainChat, argument: Argument) -> None:
    """``/edit``, ``/edit 2``, ``/edit 2 other words`` and ``/edit other words``."""
    first, _, rest = argument.text.partition(" ")
    numbered = first.removeprefix("#").isdecimal()
    exchange = chosen(plain, first if numbered else "")
    text = rest.strip() if numbered else argument.text
    if not text:
        if not plain.asks_back:
            raise SlashError("Say the new words too: /edit 2 What is a drafter?")
        plain.say(f"Question {exchange.number} is: {exchange.question}")
        text = plain.line("Instead (Enter alone leaves it): ")
    if text:
        plain.asking.ask(text, exchange.parent)


def version(plain: PlainChat, argument: Argument) -> None:
    """Of the newest answer that has versions, or else question; ``/version 2`` is the second."""
    number, part = _versioned(plain)
    place, count = plain.chat.tree.place(number, part)
    words = {"": place % count + 1, "next": place + 1, "back": place - 1}
    wanted = int(argument.text) if argument.text.isdecimal() else words.get(argument.text)
    if wanted is None:
        raise argument.wrong()
    if not plain.chat.turn_over(number, part, wanted - place):
        raise SlashError(f"There are {count} versions of this {part}, and this is version {place}.")
    _say_where(plain)


def _versioned(plain: PlainChat) -> tuple[int, Part]:
    parts: tuple[Part, Part] = ("answer", "question")
    for exchange in reversed(plain.chat.tree.path):
        for part in parts:
            if plain.chat.tree.place(exchange.number, part)[1] > 1:
                return exchange.number, part
    raise SlashError("Nothing here has versions yet: /retry asks again, /edit changes a question.")


def compare(plain: PlainChat, argument: Argument) -> None:
    """Two questions by number; with one, it and a version of it; with none, the newest that has versions."""
    words = argument.text.split()
    if len(words) > 2:
        raise argument.wrong()
    tree = plain.chat.tree
    if len(words) == 2:
        left, right = (chosen(plain, word) for word in words)
    else:
        number = chosen(plain, words[0]).number if words else _versioned(plain)[0]
        parts: tuple[Part, Part] = ("answer", "question")
        beside = (tree.beside(number, part, by) for part in parts for by in (-1, 1))
        other = next(filter(None, beside), None)
        if other is None:
            raise SlashError(f"Question {number} has one version: /retry block 4 makes another.")
        left, right = sorted((tree[number], other), key=lambda each: each.number)
    for line in compared(left, right):
        same = line.left if not line.differs else f"{line.left}, then {line.right}"
        plain.say(f"{line.name}: {same}")
    plain.say(parting(left.answer, right.answer))
    for each in (left, right):
        plain.say(f"Version {each.number}: {each.question}\n{each.answer}")


def go(plain: PlainChat, argument: Argument) -> None:
    """To where the next question will follow that one; 0 is the beginning."""
    if not argument.text:
        raise argument.wrong()
    plain.chat.go(ROOT if argument.text == str(ROOT) else chosen(plain, argument.text).number)
    _say_where(plain)


def _say_where(plain: PlainChat) -> None:
    newest = plain.chat.newest
    if newest is None:
        plain.say("You are at the beginning; the next question is a new first one.")
        return
    place = place_of(plain.chat, newest.number)
    plain.say(f"You are behind question {newest.number}{', ' + place if place else ''}: {short(newest.question)}")
    plain.say("/show reads the conversation out up to here.")


def tree(plain: PlainChat, argument: Argument) -> None:
    """All of it, or the questions with these words."""
    words = argument.text.casefold().split()
    lines = [line for line in outlined(plain.chat) if all(word in line.casefold() for word in words)]
    if not lines:
        raise SlashError("No question has these words." if words else "There is no question yet.")
    for line in lines:
        plain.say(line)
    plain.say("/go and a number goes on from there.")


def name(plain: PlainChat, argument: Argument) -> None:
    text = " ".join(argument.text.split())
    plain.chat.name(text, chosen(plain, "").number)
    named = f"From here on this branch is called {text}; /go {text} comes back."
    plain.say(named if text else "The branch has no name.")


def show(plain: PlainChat, argument: Argument) -> None:
    """The path, or one question with its answer."""
    exchanges = [chosen(plain, argument.text)] if argument.text else plain.chat.tree.path
    if not exchanges:
        raise SlashError("There is no question yet.")
    for exchange in exchanges:
        for text in told(plain.chat, exchange):
            plain.say(text)


def files(plain: PlainChat, _: Argument) -> None:
    """What the model reads beside the questions."""
    nothing = True
    for exchange in plain.chat.tree.path:
        for file in exchange.beside.files:
            plain.say(f"With question {exchange.number}, {file.name}, {counted(file.num_lines, 'line')}:\n{file.text}")
            nothing = False
        if exchange.beside.carried is not None:
            plain.say(f"From question {exchange.number} on: {exchange.beside.carried.words}")
            nothing = False
    if nothing:
        raise SlashError("No file goes with this conversation. @path in a question attaches one.")


def thought(plain: PlainChat, _: Argument) -> None:
    turn = plain.chat.reducer.turn
    text = turn.finished.thought.strip() if turn is not None and turn.finished is not None else ""
    if not text:
        raise SlashError("The newest answer came without a thought. /think on lets the model think first.")
    plain.say(text)


def chosen(plain: PlainChat, words: str) -> Exchange:
    """The question that ``words`` names by number or branch, the newest without. Raises ``SlashError``."""
    found = plain.chat.tree.find(words) if words else plain.chat.newest
    if found is None:
        missing = f"There is no question or branch {words}. /tree lists them all."
        raise SlashError(missing if words else "There is no question yet.")
    return found


COMMANDS = (
    Command("help", "this list, or one command of it", help, "[command]"),
    Command("new", "start a new chat", new),
    Command("quit", "leave; so does Ctrl+D", leave),
    Command("show", "read the conversation out, or one question with its answer", show, "[n]"),
    Command("files", "read out the files and summaries that go with the conversation", files),
    Command("thought", "read out what the model thought before its newest answer", thought),
    Command("retry", "ask a question again, maybe with other settings; both answers stay", retry, TAKES),
    Command("edit", "change a question and ask it as a new version", edit, "[n] [text]"),
    Command(
        "version", "go to another version of the newest question or answer that has some", version, "[n|next|back]"
    ),
    Command("tree", "every question that was asked, and what it follows", tree, "[words]"),
    Command("compare", "two versions one after the other, by their numbers in /tree", compare, "[n] [m]"),
    Command("go", "go on from another answer, by its number in /tree or its name", go, "n|name"),
    Command("name", "name this branch, from here on", name, "[name]"),
)
