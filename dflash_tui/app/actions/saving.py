"""Actions that keep what was written: save, open, copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from dflash_tui.core.conversation.blocks import chosen_block, newest_blocks
from dflash_tui.core.conversation.slash import Argument
from dflash_tui.core.files.desktop import (
    LONGEST_SEQUENCE,
    SHOWN,
    OpeningError,
    copy_locally,
    open_file,
    why_not_opened,
)
from dflash_tui.core.files.saving import SavingError, save_block
from dflash_tui.core.text.fences import CodeBlock

from ..notices import link, tell_not_saved
from ..screens.asking import AskScreen, Way
from .action import Action

if TYPE_CHECKING:
    from ..screens.chat import ChatScreen

UNFINISHED = "It has no end yet: this is what is there so far."


def save(screen: ChatScreen, argument: Argument) -> None:
    """``/save``, ``/save 2``, ``/save 2 page.html``, ``/save page.html`` and ``/save all``."""
    if argument.text == "all":
        _save_all(screen)
        return
    first, _, rest = argument.text.partition(" ")
    number, name = (first, rest.strip()) if first.isdecimal() else ("", argument.text)
    block = chosen_block(screen.answers(), number)
    try:
        path = save_block(block, screen.out_dir, filename=name or None)
    except SavingError as error:
        tell_not_saved(screen, error)
        return
    notice = link(path) if block.closed else Content.assemble(link(path), f"\n{UNFINISHED}")
    screen.notify(notice.markup, title="Saved", timeout=6)
    _keep_saying(screen, [path])


def _save_all(screen: ChatScreen) -> None:
    blocks = newest_blocks(screen.answers())
    try:
        paths = [save_block(block, screen.out_dir) for block in blocks]
    except SavingError as error:
        tell_not_saved(screen, error)
        return
    lines = [link(path) for path in paths]
    if not blocks[-1].closed:
        lines.append(Content(f"The last one: {UNFINISHED}"))
    screen.notify(Content("\n").join(lines).markup, title=f"Saved {len(paths)}", timeout=8)
    _keep_saying(screen, paths)


def _keep_saying(screen: ChatScreen, paths: Sequence[Path]) -> None:
    """A line that stays when the notice has gone, unless it would stand within an answer."""
    if not screen.chat.busy:
        opens = " · /open shows it" if len(paths) == 1 and paths[0].suffix.lower() in SHOWN else ""
        screen.talk.note(f"saved to {', '.join(map(str, paths))}{opens}")


def open_block(screen: ChatScreen, argument: Argument) -> None:
    """Save the block, then let the desktop show the file once the user has agreed: never one that somebody else
    wrote."""
    block = chosen_block(screen.answers(), argument.text)
    try:
        path = save_block(block, screen.out_dir)
    except SavingError as error:
        tell_not_saved(screen, error)
        return
    served = "In a browser nothing is opened: it would open on the machine that serves this page."
    if reason := served if screen.app.is_web else why_not_opened(path):
        _tell_not_opened(screen, reason, path)
        return

    def chosen(way: str | None) -> None:
        if way == "yes":
            screen.run_worker(partial(_open, screen, path), thread=True, exit_on_error=False)

    question = f"Open {path.name} on your desktop? It is what the model wrote, and the scripts in it run there."
    ways = [Way("y", "open it", "yes"), Way("n", "no; it is saved", "no")]
    screen.app.push_screen(AskScreen("open this?", question, ways, str(path.resolve())), chosen)


def _open(screen: ChatScreen, path: Path) -> None:
    """On a thread of its own: it waits for a word that it can't be shown."""
    try:
        open_file(path)
    except OpeningError as error:
        screen.app.call_from_thread(_tell_not_opened, screen, str(error), path)
    else:
        screen.app.call_from_thread(screen.notify, link(path).markup, title="Opened", timeout=4)


def _tell_not_opened(screen: ChatScreen, reason: str, path: Path) -> None:
    notice = Content.assemble(f"{reason}\nIt is here: ", link(path))
    screen.notify(notice.markup, title="Saved, not opened", severity="warning", timeout=10)


def run(screen: ChatScreen, argument: Argument) -> None:
    screen.runs.ask(argument.text)


def copy(screen: ChatScreen, argument: Argument) -> None:
    block = chosen_block(screen.answers(), argument.text)
    copy_text(screen, block.content, f"Code block {block.number}", block)


def copy_text(screen: ChatScreen, text: str, what: str, block: CodeBlock | None = None) -> None:
    """To the terminal's clipboard and this machine's; a text too long for terminals goes into a file."""
    if len(text.encode("utf-8", "replace")) > LONGEST_SEQUENCE:
        whole = block or CodeBlock(1, "", "", "copied.txt", text, closed=True)
        try:
            path = save_block(whole, screen.out_dir)
        except SavingError as error:
            tell_not_saved(screen, error)
            return
        notice = Content.assemble(f"{what} is longer than terminals accept. It is in ", link(path))
        screen.notify(notice.markup, title="Not copied", severity="warning", timeout=8)
        return
    screen.app.copy_to_clipboard(text)
    # A tool may take its time, so it gets a thread. It says nothing when there is none: the terminal was asked.
    screen.run_worker(partial(copy_locally, text), thread=True, exit_on_error=False)
    screen.notify(f"{what} was sent to the terminal's clipboard.", timeout=3, markup=False)


ACTIONS = (
    Action(
        "save",
        "save the last code block; /save takes its number, or all",
        save,
        "ctrl+s",
        "save",
        "[n|all] [name]",
    ),
    Action("open", "save a code block and show it in the browser, after asking", open_block, slash="open", takes="[n]"),
    Action("run", "run a block of Python, after asking; Esc stops it", run, slash="run", takes="[n]"),
    Action("copy", "copy a code block; y in the transcript", copy, "y", "copy", "[n]"),
)
