"""Commands that keep what was written, or use it: save, copy, open, run, export."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dflash_tui.core.attachments.attachment import counted
from dflash_tui.core.conversation.blocks import chosen_block, chosen_program, newest_blocks
from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.export.formats import FORMATS, render
from dflash_tui.core.export.of_chat import chat_document
from dflash_tui.core.files.desktop import copy_locally, open_file, why_not_opened
from dflash_tui.core.files.running import SECONDS, start
from dflash_tui.core.files.saving import save_block, save_text
from dflash_tui.core.sessions.archive import conversation_markdown, open_session
from dflash_tui.core.traces.format import SUFFIX
from dflash_tui.core.traces.writer import write_conversation

from .command import Command

if TYPE_CHECKING:
    from .chat import PlainChat

LAST = "last"


def save(plain: PlainChat, argument: Argument) -> None:
    """``/save``, ``/save 2``, ``/save 2 page.html``, ``/save page.html`` and ``/save all``."""
    first, _, rest = argument.text.partition(" ")
    number, name = (first, rest.strip()) if first.isdecimal() else ("", argument.text)
    every = argument.text == "all"
    answers = _answers(plain)
    for block in newest_blocks(answers) if every else [chosen_block(answers, number)]:
        path = save_block(block, plain.out_dir, filename=None if every else name or None)
        plain.say(f"Saved to {path}{'' if block.closed else '. It has no end yet: this is what is there so far.'}")


def copy(plain: PlainChat, argument: Argument) -> None:
    """Only by this machine's tools: the terminal's own way is a control sequence, which a bare one would print."""
    block = chosen_block(_answers(plain), argument.text)
    tool = copy_locally(block.content)
    if tool is None:
        raise SlashError("There is no clipboard here that a program can reach. /save keeps the block in a file.")
    plain.say(f"Code block {block.number} is in the clipboard.")


def open_block(plain: PlainChat, argument: Argument) -> None:
    """Save the block, then let the desktop show the file once the user has agreed."""
    block = chosen_block(_answers(plain), argument.text)
    path = save_block(block, plain.out_dir)
    plain.say(f"Saved to {path}")
    if reason := why_not_opened(path):
        raise SlashError(reason)
    plain.confirm(f"Open {path.name} on your desktop? The scripts in it run there.", "It is saved and not opened.")
    open_file(path)
    plain.say("Opened.")


def run(plain: PlainChat, argument: Argument) -> None:
    """A block of Python, in a process of its own, once the user has agreed."""
    turn, block = chosen_program(plain.chat.tree.path, argument.text)
    lines = counted(len(block.content.splitlines()), "line")
    plain.say(block.content)
    question = (
        f"Run block {block.number}, {lines} of Python? It runs as you, in an empty folder, for at most {SECONDS:.0f} "
        "seconds; it can read your files. Ctrl+C stops it."
    )
    plain.confirm(question, "It was not run.")
    running = start(block)
    try:
        result = running.wait()
    except KeyboardInterrupt:
        running.stop()
        result = running.wait()
    plain.chat.add_run(turn, result)
    plain.say(result.output.rstrip("\n") or "(it printed nothing)")
    plain.say(f"({result.words}, {result.seconds:.1f} seconds)")


def markdown(plain: PlainChat, argument: Argument) -> None:
    """The conversation up to now, from its file: what a reader finds later."""
    if not plain.log.started:
        raise SlashError("Nothing was said here yet.")
    conversation = open_session(plain.log.path)
    name = argument.text or f"{conversation.id}.md"
    plain.say(f"Saved to {save_text(conversation_markdown(conversation), plain.out_dir, name)}")


def export(plain: PlainChat, argument: Argument) -> None:
    words = argument.text.split()
    wanted = next((each for each in FORMATS if words and each == words[0]), None)
    if wanted is None:
        raise argument.wrong()
    last = words[1:2] == [LAST]
    document = chat_document(plain.chat, last=last)
    name = " ".join(words[1 + last :]) or f"{'answer' if len(document.answers) == 1 else 'chat'}.{wanted}"
    plain.say(f"Saved to {save_text(render(document, wanted), plain.out_dir, name)}")


def write_trace(plain: PlainChat, argument: Argument) -> None:
    """Everything of the path since the program, or the new chat, began."""
    if not plain.chat.turns:
        raise SlashError("There is no finished answer to write a trace of yet.")
    stamp = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    path = Path(argument.text).expanduser() if argument.text else plain.out_dir / f"{stamp}{SUFFIX}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_conversation(path, plain.chat.reducer.ready, plain.chat.turns)
    except FileExistsError:
        raise SlashError(f"{path} exists already, and traces are never overwritten. Choose another name.") from None
    except (OSError, RuntimeError) as error:
        raise SlashError(f"The trace could not be written: {getattr(error, 'strerror', None) or error}") from None
    plain.say(f"Saved to {path}. dflash-chat replay shows it.")


def _answers(plain: PlainChat) -> list[str]:
    """Newest first."""
    return plain.chat.answers[::-1]


COMMANDS = (
    Command("save", "save the last code block; or its number, or all", save, "[n|all] [name]"),
    Command("open", "save a code block and let the desktop show it, after asking", open_block, "[n]"),
    Command("run", "run a block of Python, after asking", run, "[n]"),
    Command("copy", "copy a code block", copy, "[n]"),
    Command("markdown", "write this conversation to a Markdown file", markdown, "[name]"),
    Command(
        "export", "the answers as a page, picture, recording or data", export, f"html|svg|cast|json [{LAST}] [name]"
    ),
    Command("trace", "write a trace of this chat, to replay it", write_trace, "[file]"),
)
