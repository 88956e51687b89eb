"""A list to choose from, narrowed down by typing: sessions, earlier questions, recorded runs, themes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from rich.cells import cell_len, set_cell_size
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content, Span
from textual.screen import ModalScreen
from textual.theme import Theme
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from dflash_tui.core.replay.bundled import SHOWN, bundled_recordings
from dflash_tui.core.sessions.prompts import PromptHistory
from dflash_tui.core.text.harmless import sanitise

from ..theming import defaults_for, ground_of
from ..widgets.rounds.round_strip import legend
from .once import DismissOnceScreen

Entry = TypeVar("Entry")
SHARE, AROUND = 0.85, 5
"""The share of the screen's rows that the box may take, and how many of them aren't the list: border, words, keys."""
MAX_WIDTH, FRAME = 110, 6
"""Cells of the box, and of what stands around a line in it: border, padding, scrollbar."""


BESIDE = "$foreground 75%"
"""What stands beside an entry's name: readable on the chosen row, too."""


class PickerScreen(ModalScreen[Entry | None], DismissOnceScreen[Entry | None], Generic[Entry]):
    """Typing narrows the list, ↑ ↓ move in it, Enter chooses, Esc leaves. Subclasses say what is in the list."""

    DEFAULT_CSS = """
    PickerScreen { align: center bottom; }
    PickerScreen > Vertical {
        width: 100%;
        max-width: 110;
        height: auto;
        max-height: 100%;
        padding: 0 1;
        background: $surface;
        border: round $primary;
        border-title-color: $primary;
    }
    PickerScreen Input { border: none; height: 1; padding: 0; background: $surface; }
    PickerScreen Input:focus { border: none; }
    PickerScreen Input > .input--placeholder { color: $foreground 72%; }
    PickerScreen OptionList { height: auto; border: none; padding: 0; background: $surface; }
    PickerScreen OptionList:focus { border: none; }
    PickerScreen OptionList > .option-list--option-highlighted { background: $primary 20%; text-style: bold; }
    PickerScreen .keys { color: $verdict-pending; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss_empty", "Close", show=False, priority=True),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
        Binding("down", "move(1)", "Down", show=False, priority=True),
        Binding("pageup", "move(-10)", "Page up", show=False, priority=True),
        Binding("pagedown", "move(10)", "Page down", show=False, priority=True),
    ]
    HEAD = ""
    """The title of the list."""
    KEYS = "↑ ↓ move · Enter takes it · Esc closes"
    EMPTY = "nothing here yet"
    """Said of an empty list while nothing was typed."""
    SHOWN = 200
    """Entries drawn at once; typing brings the others."""
    ROWS = 16
    """Rows of the list, where there is room for them and for what stands around it."""

    def __init__(self, words: str = "") -> None:
        super().__init__()
        self._words = words
        self._shown: list[Entry] = []

    @property
    def line_width(self) -> int:
        """Cells that an entry may take without being wrapped."""
        return min(self.app.size.width, MAX_WIDTH) - FRAME

    def find(self, words: str) -> Iterable[Entry]:
        """The entries that match what was typed, best first."""
        raise NotImplementedError

    def describe(self, entry: Entry) -> Content:
        """One line of at most ``line_width`` cells."""
        raise NotImplementedError

    def first(self, shown: Sequence[Entry]) -> int:
        """The place in ``shown`` of the entry under the cursor at first."""
        return 0

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Input(self._words, placeholder="type to search", compact=True)
            yield OptionList(compact=True)
            yield Static(self.KEYS, classes="keys")

    def on_mount(self) -> None:
        self.query_one(Vertical).border_title = self.HEAD
        self.on_resize()  # before it is filled: a first frame shows the keys below the list, too
        self.refill()

    def on_resize(self) -> None:
        room = int(SHARE * self.app.size.height) - AROUND
        options = self.query_one(OptionList)
        options.styles.max_height = min(self.ROWS, max(room, 3))
        for index, entry in enumerate(self._shown):
            options.replace_option_prompt_at_index(index, self.describe(entry))
        self.call_after_refresh(options.scroll_to_highlight)

    def refill(self) -> None:
        """Ask :meth:`find` again and show what it gives."""
        words = self.words
        entries = list(self.find(words))
        self._shown = entries[: self.SHOWN]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(Option(self.describe(entry)) for entry in self._shown)
        if self._shown:
            options.highlighted = self.first(self._shown)
        left = len(entries) - len(self._shown)
        empty = "" if self._shown else "nothing found · " if words else f"{self.EMPTY} · "
        keys = self.KEYS if self._shown else self.KEYS.rpartition(" · ")[2]
        self.query_one(".keys", Static).update(f"{empty}{f'{left} more · ' if left else ''}{keys}")

    @property
    def words(self) -> str:
        """The words that the user has typed to narrow the list."""
        return self.query_one(Input).value

    @property
    def chosen(self) -> Entry | None:
        """The entry under the cursor."""
        highlighted = self.query_one(OptionList).highlighted
        return None if highlighted is None or highlighted >= len(self._shown) else self._shown[highlighted]

    @on(Input.Changed)
    def narrow(self) -> None:
        self.refill()

    @on(Input.Submitted)
    def take(self) -> None:
        if self.chosen is not None:
            self.dismiss(self.chosen)

    @on(OptionList.OptionSelected)
    def clicked(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(self._shown[message.option_index])

    def action_move(self, by: int) -> None:
        options = self.query_one(OptionList)
        if self._shown:
            last = len(self._shown) - 1
            options.highlighted = min(max((options.highlighted or 0) + by, 0), last)

    def action_dismiss_empty(self) -> None:
        self.dismiss(None)


def sample(theme: Theme, room: int) -> Content:
    """The verdicts in a theme's own colours on its own ground, whatever theme is in force."""
    looks = {**defaults_for(theme), **theme.variables}
    ground = f" on {ground_of(theme)}"
    words = legend(room=room)
    spans = [
        Span(span.start, span.end, _VARIABLE.sub(lambda name: looks[name[1]], str(span.style)) + ground)
        for span in words.spans
    ]
    return Content(words.plain, [Span(0, len(words.plain), ground.strip()), *spans])


_VARIABLE = re.compile(r"\$([\w-]+)")
LENGTH = 200
"""Characters of a question that the list draws at most."""


class SearchScreen(PickerScreen[str]):
    """Finds a question that was asked before. Gives it, or None."""

    HEAD = "earlier questions"
    KEYS = "↑ ↓ move · Enter brings it into the prompt · Esc closes"

    def __init__(self, questions: PromptHistory) -> None:
        super().__init__()
        self._questions = questions

    def find(self, words: str) -> Iterable[str]:
        return self._questions.search(words)

    def describe(self, entry: str) -> Content:
        text = sanitise(" ".join(entry[:LENGTH].split()))
        return Content(set_cell_size(text, min(cell_len(text), self.line_width)))


class RecordingPicker(PickerScreen[Path]):
    """Lists the bundled recordings. Gives the file of the chosen one, or None."""

    HEAD = "recorded runs · any chat: /replay and its name, or F7 in Ctrl+O"

    def find(self, words: str) -> Iterable[Path]:
        return [path for name, path in bundled_recordings().items() if words.lower() in name]

    def describe(self, entry: Path) -> Content:
        return Content.assemble(f"{entry.stem:<14}", (SHOWN.get(entry.stem, ""), BESIDE)).truncate(self.line_width)


class ThemePicker(PickerScreen[str]):
    """Lists the themes and shows the one under the cursor. Gives its name, or None to keep the one in use."""

    DEFAULT_CSS = """
    ThemePicker { background: transparent; }
    ThemePicker > Vertical { max-height: 60%; }
    """
    KEYS = "↑ ↓ look · Enter keeps it · Esc goes back"

    def __init__(self, before: str) -> None:
        super().__init__()
        self._before = before

    def on_mount(self) -> None:
        self.query_one(Vertical).border_title = f"themes · {len(self.app.available_themes)}, your own among them"

    def find(self, words: str) -> Iterable[str]:
        """Names of themes: the one in use, then the others."""
        names = sorted(self.app.available_themes, key=lambda name: (name != self._before, name))
        return [name for name in names if words.lower() in name]

    def describe(self, entry: str) -> Content:
        theme = self.app.available_themes[entry]
        ground = "dark" if theme.dark else "light"
        name = Content.assemble(f"{entry:<21}", f"{ground:<7}")
        return name + sample(theme, self.line_width - name.cell_length)

    @on(OptionList.OptionHighlighted)
    def preview(self) -> None:
        if self.chosen is not None:
            self.app.theme = self.chosen
