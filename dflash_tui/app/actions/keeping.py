"""Actions that keep what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_tui.core.fences import find_blocks
from dflash_tui.core.saving import SavingError, save_block
from dflash_tui.core.slash import Argument, SlashError

from .action import Action

if TYPE_CHECKING:
    from ..screens.chat import ChatScreen


def save(screen: ChatScreen, argument: Argument) -> None:
    """Save a code block of the newest answer that has one; without a number its last."""
    number = argument.integer() if argument.text else None
    blocks = next((found for text in screen.answers() if (found := find_blocks(text))), [])
    chosen = [block for block in blocks if number in (None, block.number)]
    if not chosen:
        raise SlashError(f"There is no code block {number or ''} to save yet.".replace("  ", " "))
    block = chosen[-1]
    try:
        path = save_block(block, screen.out_dir)
    except SavingError as error:
        screen.notify(f"{error}\n{error.hint}", title="Not saved", severity="error", timeout=10)
        return
    cut = "" if block.closed else "\nThe block has no end yet: this is what is there so far."
    screen.notify(f"{path.resolve()}{cut}", title="Saved", timeout=6)


ACTIONS = (Action("save", "save code block n of the newest answer, else the last", save, "ctrl+s", "save", "[n]"),)
