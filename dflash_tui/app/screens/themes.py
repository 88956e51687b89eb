"""The list of themes: the screen behind it wears the one under the cursor."""

from __future__ import annotations

from collections.abc import Iterable

from textual import on
from textual.content import Content
from textual.widgets import OptionList

from ..theming import own_first
from ..widgets.round_strip import legend
from .picker import PickerScreen


class ThemePicker(PickerScreen[str]):
    """Answers with the name of the theme, or None to keep what there was."""

    DEFAULT_CSS = """
    ThemePicker { background: transparent; }
    ThemePicker OptionList { max-height: 8; }
    """
    HEAD = "themes"
    KEYS = "↑ ↓ look · Enter keeps it · Esc goes back"

    def __init__(self, before: str) -> None:
        super().__init__()
        self._before = before

    def find(self, words: str) -> Iterable[str]:
        """The one in use, this program's others, then those that Textual brings."""
        names = sorted(own_first(self.app.available_themes), key=lambda name: name != self._before)
        return [name for name in names if words.lower() in name]

    def describe(self, entry: str) -> Content:
        theme = self.app.available_themes[entry]
        ground = "dark" if theme.dark else "light"
        line = Content.assemble(f"{entry:<21}", (f"{ground:<7}", "$verdict-pending"), legend())
        return line.truncate(self.line_width, ellipsis=True)

    @on(OptionList.OptionHighlighted)
    def preview(self) -> None:
        if self.chosen is not None:
            self.app.theme = self.chosen
