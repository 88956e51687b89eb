"""The transcript: a growing text of tokens, each in the look of its verdict.

A Line-API widget: only visible rows are drawn, rows that did not change come from a cache, and appending costs the
same after twenty thousand tokens as after twenty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, get_args

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from dflash_tui.core.reducer import Look, Span

from ..wrapping import Document, Row, width_of

CACHED_ROWS = 1024
_BLANKS = re.compile(r"(\s+)")


class TokenLog(ScrollView, can_focus=True):
    """Follows the end while the reader is there, and lets go when they scroll up."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"token-log--{look}" for look in get_args(Look)} | {"token-log--chip"}
    DEFAULT_CSS = """
    TokenLog {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
        scrollbar-color: $panel-lighten-2;
        color: $foreground;
        & > .token-log--prompt { color: $foreground; background: $panel; text-style: bold; }
        & > .token-log--accepted { color: $verdict-accepted; }
        & > .token-log--corrected { color: $verdict-corrected; text-style: bold underline; }
        & > .token-log--bonus { color: $verdict-bonus; text-style: bold; }
        & > .token-log--plain { color: $verdict-plain; }
        & > .token-log--thought { color: $verdict-pending; text-style: italic; }
        & > .token-log--note { color: $verdict-pending; }
        & > .token-log--error { color: $text-error; text-style: bold; }
        & > .token-log--chip { color: $background; background: $primary; text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "Up", show=False),
        Binding("down,j", "scroll_down", "Down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown,space", "page_down", "Page down", show=False),
        Binding("home,g", "scroll_home", "Top", show=False),
        Binding("end,G", "follow", "Follow the end", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.following = True
        """The view is at the end and stays there as the text grows."""
        self._document = Document(80)
        self._cache: LRUCache[int, tuple[Row, Strip]] = LRUCache(CACHED_ROWS)
        self._styles: dict[Look, Style] = {}
        self._chip_style = Style()
        self._seen_rows = 0

    @property
    def rows(self) -> list[Row]:
        return self._document.rows

    @property
    def text(self) -> str:
        """Everything in the log, as it would be copied."""
        return "".join(self._joined(0, len(self.rows)))

    def append(self, spans: list[Span]) -> None:
        """Add to the end. Costs what was added, whatever is there already."""
        if not spans:
            return
        first = self._document.append(spans)
        self._update_size()
        if self.following:
            self.follow()
        # Also when following: the last row may have grown without a new row. Clipped to the view, for everything
        # within the bounds of what changed is drawn again.
        top = max(first - self.scroll_offset.y, 0)
        if top < self.size.height:
            self.refresh(Region(0, top, self.size.width, self.size.height - top))

    def clear(self) -> None:
        self._document.clear()
        self._cache.clear()
        self._update_size()
        self.follow()
        self.refresh()

    def toggle_thoughts(self) -> bool:
        """Fold thoughts away, or show them; returns whether they are folded now."""
        folded = not self._document.folded
        self._document.fold(folded)
        self._cache.clear()
        self._update_size()
        if self.following:
            self.follow()
        self.refresh()
        return folded

    def follow(self) -> None:
        """Go to the end and stay there."""
        self.following = True
        self._seen_rows = len(self.rows)
        self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)

    def action_follow(self) -> None:
        self.follow()
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        at_end = round(new_value) >= self.max_scroll_y
        if self.following and not at_end:
            self._seen_rows = len(self.rows)
        self.following = at_end

    def on_resize(self, event: events.Resize) -> None:
        width = self.scrollable_content_region.width
        if width == self._document.width:
            following = self.following
            self._update_size()
        else:
            following = self.following
            self._document.resize(width)
            self._cache.clear()
            self._update_size()
        if following:
            self.follow()

    def on_click(self, event: events.Click) -> None:
        if self._chip and event.y == self.size.height - 1 and event.x >= self._document.width - width_of(self._chip):
            self.action_follow()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._cache.clear()
        self._styles.clear()

    def _update_size(self) -> None:
        # An assignment would lay out the whole screen again; only the scrollbar needs to hear of it.
        self.set_reactive(Widget.virtual_size, Size(self._document.width, len(self.rows)))
        self.vertical_scrollbar.window_virtual_size = len(self.rows)

    @property
    def _chip(self) -> str:
        """What waits below the view, while the reader is elsewhere."""
        new = len(self.rows) - self._seen_rows
        if self.following:
            return ""
        return f" ↓ {new} new · End " if new > 0 else " ↓ End "

    # Drawing

    def render_line(self, y: int) -> Strip:
        """With the offsets that Textual's mouse selection asks for."""
        row = self.scroll_offset.y + y
        return self._strip(y, self.text_selection).apply_offsets(0, row)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Rows of the view, without offsets: they would make every segment's style its own and none reusable."""
        width = self.size.width
        selection = self.text_selection
        strips = [self._strip(y, selection) for y in range(crop.y, crop.bottom)]
        background = self.background_colors[1]
        for line_filter in self.app.get_line_filters():
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        if crop.x == 0 and crop.width == width:
            return strips
        return [strip.crop(crop.x, crop.right) for strip in strips]

    def _strip(self, y: int, selection: Selection | None) -> Strip:
        if not self._styles:
            self._load_styles()
        index = self.scroll_offset.y + y
        width = self.size.width
        if index >= len(self.rows):
            return Strip.blank(width, self._styles["plain"])
        strip = self._row_strip(index, width, selection)
        chip = self._chip if y == self.size.height - 1 else ""
        return self._with_chip(strip, chip) if chip else strip

    def _with_chip(self, strip: Strip, chip: str) -> Strip:
        """At the right end of the text: the column behind it is the scrollbar's."""
        cut = self._document.width - width_of(chip)
        segments = [*strip.crop(0, cut), Segment(chip, self._chip_style)]
        return Strip(segments).adjust_cell_length(strip.cell_length, self._styles["plain"])

    def _row_strip(self, index: int, width: int, selection: Selection | None) -> Strip:
        row = self.rows[index]
        if selection is not None and (chosen := selection.get_span(index)) is not None:
            return self._draw(_mark(row, *chosen), width, self.selection_style)
        cached = self._cache.get(index)
        if cached is not None and cached[0] is row and cached[1].cell_length == width:
            return cached[1]
        strip = self._draw(((span.text, span.look, False) for span in row.spans), width)
        self._cache[index] = (row, strip)
        return strip

    def _draw(self, pieces: Iterator[tuple[str, Look, bool]], width: int, marked: Style | None = None) -> Strip:
        segments = []
        last: Look = "plain"
        for text, look, chosen in pieces:
            for word, style in self._styled(text, look):
                segments.append(Segment(word, style + marked if chosen and marked else style))
            last = look
        # The user's own words stand on a band; everything else on the background.
        rest = self._styles["prompt" if last == "prompt" else "note"]
        return Strip(segments).adjust_cell_length(width, rest)

    def _styled(self, text: str, look: Look) -> Iterator[tuple[str, Style]]:
        """Blanks are not underlined: a token begins with one more often than not."""
        style = self._styles[look]
        if not style.underline:
            yield text, style
            return
        blank = self._styles["plain"]
        for part in _BLANKS.split(text):
            if part:
                yield part, blank if part.isspace() else style

    def _load_styles(self) -> None:
        self._styles = {look: self.get_component_rich_style(f"token-log--{look}") for look in get_args(Look)}
        self._chip_style = self.get_component_rich_style("token-log--chip")

    # Selection

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text; rows that were only wrapped are joined again."""
        start = selection.start.y if selection.start else 0
        end = selection.end.y if selection.end else len(self.rows) - 1
        return "".join(self._joined(start, end + 1, selection)), "\n"

    def _joined(self, start: int, end: int, selection: Selection | None = None) -> Iterator[str]:
        for index in range(max(start, 0), min(end, len(self.rows))):
            text = self.rows[index].text
            first, last = (selection.get_span(index) if selection else None) or (0, -1)
            yield text[first : len(text) if last == -1 else last]
            if not self.rows[index].soft and index + 1 < end:
                yield "\n"


def _mark(row: Row, start: int, end: int) -> Iterator[tuple[str, Look, bool]]:
    """The row's pieces, cut where a selection of its characters begins and ends; ``end`` -1 is the row's end."""
    stop = len(row.text) if end == -1 else end
    place = 0
    for text, look in ((span.text, span.look) for span in row.spans):
        low, high = min(max(start - place, 0), len(text)), min(max(stop - place, 0), len(text))
        for piece, chosen in ((text[:low], False), (text[low:high], True), (text[high:], False)):
            if piece:
                yield piece, look, chosen
        place += len(text)
