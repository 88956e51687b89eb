"""The whole tree of a conversation: every question that was asked, with its figures, and the way to each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Literal

from rich.cells import cell_len, set_cell_size
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList

from dflash_tui.core.conversation.differences import models_apart, settings_apart
from dflash_tui.core.conversation.tree import Outlined, Tree
from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.figures.labels import TOKENS_PER_ROUND
from dflash_tui.core.text.counted import counted
from dflash_tui.core.text.harmless import sanitise

from .picker import BESIDE, PickerScreen
from .sessions import RenameScreen

Wish = tuple[Literal["edit", "retry"], int]
"""What else to do, and with which question."""
DEEPEST = 8
"""How many levels of the tree have a column; what is further in stands in the last one."""
WIDE = 90
"""Cells of a line from which there is room for figures."""
LEAST_WORDS = 8
"""Cells that a question gets at least; the figures behind it give way."""


class TreeScreen(PickerScreen[Outlined[Turn]]):
    """Shows the tree of questions. Gives the question to go to, or None; another wish goes to ``take``."""

    HEAD = "this conversation, with every version"
    KEYS = "Enter goes there · F2 names · ^E edits · ^R again · Esc"
    SHOWN = 2000
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2", "rename", "Name", show=False, priority=True),
        Binding("ctrl+e", "wish('edit')", "Edit", show=False, priority=True),
        Binding("ctrl+r", "wish('retry')", "Ask again", show=False, priority=True),
    ]

    def __init__(
        self, tree: Tree[Turn], name: Callable[[int, str], None], take: Callable[[Wish], None], words: str = ""
    ) -> None:
        super().__init__(words)
        self._tree, self._name_branch, self._take = tree, name, take
        self._rows = tree.outline()
        self._models = models_apart(tree)
        self._path = {exchange.number for exchange in tree.path}

    def first(self, shown: Sequence[Outlined[Turn]]) -> int:
        """The place of the question where the chat stands."""
        return next((index for index, row in enumerate(shown) if row.node.number == self._tree.here), 0)

    def find(self, words: str) -> Iterable[Outlined[Turn]]:
        """The exchanges that hold every word, in question, answer or name; a number finds its question."""
        wanted = words.casefold().split()
        return [row for row in self._rows if all(word in self._question_text(row.node) for word in wanted)]

    @staticmethod
    def _question_text(node: Turn) -> str:
        return f"#{node.number} {node.name} {node.question} {node.answer}".casefold()

    def describe(self, entry: Outlined[Turn]) -> Content:
        node = entry.node
        on_path = node.number in self._path
        here = node.number == self._tree.here
        head = f"{_rails(entry)}{'◉' if here else '●' if on_path else '○'} "
        name = f"{sanitise(node.name)}  " if node.name else ""
        first = self._tree.versions(node.number, "answer")[0]
        apart = settings_apart(node, first) if first is not node else ""
        figures = _facts(node, self.line_width >= WIDE)
        details = [*filter(None, (sanitise(self._models.get(node.number, "")), apart, figures))]
        free = self.line_width - cell_len(head) - cell_len(name)
        while len(details) > 1 and free - cell_len(_joined(details, node)) < LEAST_WORDS:
            details.pop()
        facts = _joined(details, node)
        room = max(free - cell_len(facts), LEAST_WORDS)
        words = sanitise(" ".join(node.question[: 4 * room].split()))
        question = set_cell_size(words, room) if cell_len(words) <= room else f"{set_cell_size(words, room - 1)}…"
        return Content.assemble(
            (head, "$primary" if on_path else BESIDE),
            (name, "bold $primary"),
            (question, "$foreground" if on_path else BESIDE),
            (facts, BESIDE),
        )

    def action_wish(self, what: Literal["edit", "retry"]) -> None:
        if (row := self.chosen) is not None:
            self.dismiss(None)
            self._take((what, row.node.number))

    def action_rename(self) -> None:
        if (row := self.chosen) is None:
            return

        def rename(name: str | None) -> None:
            if name is not None:
                self._name_branch(row.node.number, name)
                highlighted = self.query_one(OptionList).highlighted
                self.refill()
                self.query_one(OptionList).highlighted = highlighted

        self.app.push_screen(RenameScreen(row.node.name, "What this branch is called, from here on:"), rename)


def _joined(facts: Sequence[str], node: Turn) -> str:
    return f"  {' · '.join(facts)} #{node.number}"


def _rails(row: Outlined[Turn]) -> str:
    """The lines of the tree to the left of a row, such as ``│ ├ ``."""
    if not row.depth:
        return ""
    further_in = row.depth > DEEPEST
    rails = row.rails[-(DEEPEST - 1) :] if further_in else row.rails
    lines = "".join("│ " if goes_on else "  " for goes_on in rails)
    own = ("└─" if row.last else "├─") if row.forked else ""
    return f"{'…' if further_in else ''}{lines}{own}"


def _facts(node: Turn, wide: bool) -> str:
    figures = node.figures
    if not figures.num_tokens:
        return "no answer" if not node.answer else ""
    parts = [counted(figures.num_tokens, "token"), f"{figures.tok_s:.0f} tok/s"]
    if figures.num_spec_steps:
        parts.append(f"{figures.tokens_per_round:.2f} {TOKENS_PER_ROUND.name}")
    return " · ".join(parts) if wide else f"{figures.tok_s:.0f} tok/s"
