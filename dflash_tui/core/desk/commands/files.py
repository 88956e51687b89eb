"""Commands that keep what was written, or use it: save, open, copy, run, export."""

from __future__ import annotations

from pathlib import Path

from ...conversation.blocks import chosen_block, newest_blocks
from ...conversation.slash import Argument, SlashError
from ...export.formats import FORMATS, render
from ...export.of_chat import chat_document
from ...files.desktop import SHOWN, OpeningError, open_file, why_not_opened
from ...files.saving import save_block, save_text
from ...text.fences import CodeBlock, find_blocks
from ..command import Command
from ..desk import Desk
from ..face import AskOption, Question

LAST = "last"
ANSWER = "answer"
UNFINISHED = "It has no end yet: this is what is there so far."


def save(desk: Desk, argument: Argument) -> None:
    """Save code blocks: ``/save``, ``/save 2``, ``/save 2 page.html``, ``/save page.html`` and ``/save all``."""
    every = argument.text == "all"
    first, _, rest = argument.text.partition(" ")
    number, name = (first, rest.strip()) if first.isdecimal() else ("", argument.text)
    blocks = newest_blocks(desk.answers()) if every else [chosen_block(desk.answers(), number)]
    paths = [save_block(block, desk.out_dir, filename=None if every else name or None) for block in blocks]
    shown = len(paths) == 1 and paths[0].suffix.lower() in SHOWN
    remark = "" if blocks[-1].closed else f"{'The last one: ' if every else ''}{UNFINISHED}"
    desk.face.saved(paths, remark, "/open shows it" if shown else "")


def copy(desk: Desk, argument: Argument) -> None:
    """Copy a code block of the newest answer, or of the newest that has one by its number; without a number, and where
    the newest answer has no code, that answer."""
    newest = next(iter(desk.answers()), "")
    if argument.text == ANSWER or not (argument.text or find_blocks(newest)):
        if not newest:
            raise SlashError("There is no answer yet.")
        desk.face.copy("The answer", CodeBlock(1, "", "", "answer.md", newest, closed=True))
        return
    block = chosen_block(desk.answers(), argument.text)
    desk.face.copy(f"Code block {block.number}", block)


def open_block(desk: Desk, argument: Argument) -> None:
    """Save the block, then let the desktop show the file once the user has agreed: never one that somebody else
    wrote."""
    path = save_block(chosen_block(desk.answers(), argument.text), desk.out_dir)
    if reason := why_not_opened(path):
        raise SlashError(f"{reason}\nIt is here: {path.resolve()}")

    def opened() -> str:
        try:
            open_file(path)
        except OpeningError as error:
            return f"{error}\n{error.hint}"
        return ""

    def report(problem: str) -> None:
        desk.face.say(problem or f"Opened {path.name}.", grave=bool(problem))

    def chosen(way: str | None) -> None:
        if way == "yes":
            desk.face.wait(opened, report)

    question = f"Open {path.name} on your desktop? It is what the model wrote, and the scripts in it run there."
    ways = (AskOption("y", "yes", "open it"), AskOption("n", "no", "no; it is saved"))
    otherwise = f"It is saved to {path} and not opened."
    desk.face.ask(Question("open this?", question, ways, otherwise, str(path.resolve())), chosen)


def export(desk: Desk, argument: Argument) -> None:
    """Write the answers of this chat, as they were decoded, to a file for others."""
    words = argument.text.split()
    if words and words[0] not in FORMATS:
        words.insert(0, Path(words[-1]).suffix[1:].lower() or words[0])  # a file's name says its format
    wanted = next((each for each in FORMATS if words and each == words[0]), None)
    if words and words[0] == "md":
        raise SlashError("/markdown and a name write the conversation as Markdown.")
    if wanted is None:
        raise argument.wrong()
    last = words[1:2] == [LAST]
    document = chat_document(desk.chat, last=last)
    name = " ".join(words[1 + last :]) or f"{'answer' if len(document.answers) == 1 else 'chat'}.{wanted}"
    desk.face.saved([save_text(render(document, wanted), desk.out_dir, name)])


COMMANDS = (
    Command(
        "export",
        "Export the answers",
        "the answers as a page or as data",
        export,
        slash="export",
        takes=f"html|json [{LAST}] [name]",
    ),
    Command(
        "save",
        "Save code",
        "save the last code block, one by its number, or all",
        save,
        "ctrl+s",
        "save",
        "[n|all] [name]",
    ),
    Command("open", "Open code", "save a code block and show it, after asking", open_block, slash="open", takes="[n]"),
    Command(
        "copy",
        "Copy code or the answer",
        "copy the last code block, one by its number, or the answer",
        copy,
        "y",
        "copy",
        f"[n|{ANSWER}]",
    ),
)
