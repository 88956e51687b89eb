"""The transcript: a growing text of tokens, each styled by its verdict or another lens. A Line-API widget: only visible
rows are drawn, unchanged ones cached, and appending costs the same at any length. Lens, scrubber and cursor never
change the wrapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, get_args

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from dflash_tui.core.rounds.lenses import Shade
from dflash_tui.core.text.marks import Mark
from dflash_tui.core.text.spans import Span, TokenStyle
from dflash_tui.core.text.wrapping import Document, Row, WrappedRows, width_of

from .rounds.landing import LANDED, Landing
from .rounds.round_strip import SHADE_STYLES
from .rounds.spotlight import Role, Spotlight, cut_pieces, role_of, styled_words

CACHED_ROWS = 256
"""Drawn rows that are kept: a few screens. Each takes some kilobytes, in Textual's own caches beside it."""

Shader = Callable[[int, int], Shade | None]
"""A lens: how to paint (turn, token); None leaves it as plain text."""


class TokenLog(ScrollView, can_focus=True):
    """The transcript as a widget. It follows the end until the reader scrolls up."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"token-log--{name}" for name in (*get_args(TokenStyle), *get_args(Role), *LANDED.values(), "chip")
    }
    DEFAULT_CSS = """
    TokenLog {
        overflow-x: hidden;
        overflow-y: scroll;
        color: $foreground;
        & > .token-log--prompt { color: $foreground; background: $panel; text-style: bold; }
        & > .token-log--accepted { color: $verdict-accepted; text-style: $verdict-accepted-style; }
        & > .token-log--corrected { color: $verdict-corrected; text-style: $verdict-corrected-style; }
        & > .token-log--bonus { color: $verdict-bonus; text-style: $verdict-bonus-style; }
        & > .token-log--plain { color: $verdict-plain; text-style: $verdict-plain-style; }
        & > .token-log--text { color: $foreground; }
        & > .token-log--thought { color: $verdict-pending; text-style: italic; }
        & > .token-log--note { color: $verdict-pending; }
        & > .token-log--error { color: $text-error; text-style: bold; }
        & > .token-log--fold { color: $primary; }
        & > .token-log--output { color: $foreground; background: $surface; }
        & > .token-log--version { color: $primary; }
        & > .token-log--unknown { color: $verdict-pending; text-style: underline; }
        & > .token-log--landed-accepted { color: $landed-accepted-text; background: $landed-accepted; }
        & > .token-log--landed-corrected { color: $landed-corrected-text; background: $landed-corrected; }
        & > .token-log--landed-corrected { text-style: $verdict-corrected-style; }
        & > .token-log--landed-bonus { color: $landed-bonus-text; background: $landed-bonus; text-style: bold; }
        & > .token-log--after { color: $foreground 62%; }
        & > .token-log--hidden { color: $background; }
        & > .token-log--step { background: $foreground 16%; }
        & > .token-log--cursor { color: $background; background: $foreground; text-style: bold; }
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

    @dataclass
    class Picked(Message):
        """The user clicked a token."""

        turn: int
        token: int

    @dataclass
    class Unfolded(Message):
        """The user clicked a line that stands for a longer text."""

        index: int
        """Which of the foldable lines in the log, counted from 0."""

    @dataclass
    class Turned(Message):
        """The user clicked the mark of something that has versions."""

        index: int
        """Which of the marks in the log, counted from 0."""
        by: int
        """Which of its parts: -1 is back, 1 on, 0 the number between."""

    class Released(Message):
        """The user went back to the live end while the scrubber stood somewhere."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.following = True
        """Whether the view is at the end and stays there as the text grows."""
        self._document = Document(80)
        self._cache: LRUCache[int, tuple[Row, Strip]] = LRUCache(CACHED_ROWS)
        self._styles: dict[str, Style] = {}
        self._band = Style()
        """The style of the ground behind the user's own words."""
        self._shader: Shader | None = None
        self._spotlight: Spotlight | None = None
        self._frontier = 0  # where the text behind the spotlight begins
        self._landing = Landing(self, lambda start: self._refresh_from(self._document.row_showing(start)))
        self._seen_rows = 0

    @property
    def rows(self) -> WrappedRows:
        return self._document.rows

    @property
    def text(self) -> str:
        """Everything in the log, as it would be copied."""
        return "".join(self._joined(0, len(self.rows)))

    def append(self, spans: Sequence[Span]) -> None:
        """Add to the end. Costs what was added, whatever is there already."""
        if not spans:
            return
        start = self._document.length
        first = self._document.append(spans)
        first = min(first, self._document.row_showing(self._landing.begin(start, self._document.length)))
        self._update_size()
        if self.following and self._spotlight is None:
            self.follow()
        self._refresh_from(first)

    def _refresh_from(self, first: int) -> None:
        # Also when following: the last row may have grown without a new row. Clipped to the view, for everything
        # within the bounds of what changed is drawn again.
        top = max(first - self.scroll_offset.y, 0)
        if top < self.size.height:
            self.refresh(Region(0, top, self.size.width, self.size.height - top))

    def show_character(self, offset: int) -> None:
        """Scroll so that a character, of all that are there, stands near the top."""
        self.scroll_to(y=max(self._document.row_showing(offset) - 1, 0), animate=False, immediate=True)

    def scroll_among(self, offsets: Sequence[int], by: int) -> None:
        """Scroll to the nearest of these characters above (-1) or below (1) the top; or to the end that lies there."""
        rows = (max(self._document.row_showing(each) - 1, 0) for each in offsets)
        ahead = [row for row in rows if (row - self.scroll_offset.y) * by > 0]
        self.scroll_to(y=min(ahead, default=self.max_scroll_y) if by > 0 else max(ahead, default=0), animate=False)

    @property
    def length(self) -> int:  # characters in all
        return self._document.length

    def cut(self, length: int) -> None:
        """Forget what stands behind the first ``length`` characters, which end with a line."""
        self._document.cut(length)
        self._seen_rows = min(self._seen_rows, len(self.rows))
        self._update_size()
        self._repaint()

    def paint(self, shader: Shader | None) -> None:
        """Look through a lens; None shows the verdicts."""
        self._shader = shader
        self._repaint()

    def show_at(self, spotlight: Spotlight | None) -> None:
        """Mark where the scrubber stands and bring it into view; None for the live text."""
        if spotlight == self._spotlight:
            return
        self._spotlight = spotlight
        if spotlight is None:
            self.follow()
        else:
            self._reveal(spotlight)
        self._repaint()

    def _reveal(self, spotlight: Spotlight) -> None:
        """Scroll only if the round, or its cursor, isn't in view; then to the middle."""
        self._frontier = self._document.marks.end_of(spotlight.turn, spotlight.behind)
        token = spotlight.first if spotlight.cursor is None else spotlight.cursor
        row = self._document.row_of(self._document.marks.start_of(spotlight.turn, token))
        last = row if spotlight.cursor is not None else self._document.row_of(max(self._frontier - 1, 0))
        top, height = self.scroll_offset.y, self.size.height
        if row < top or max(last, row) >= top + height:
            self.scroll_to(y=max(row - height // 2, 0), animate=False, immediate=True)

    def _repaint(self) -> None:
        self._cache.clear()
        self.refresh()

    def clear(self) -> None:
        self._document.clear()
        self._landing.forget()
        self._spotlight = None
        self._cache.clear()
        self._update_size()
        self.follow()
        self.refresh()

    def toggle_thoughts(self) -> bool:
        """Fold thoughts away, or show them; returns whether they are folded now."""
        folded = not self._document.folded
        self._document.fold(folded)
        self._update_size()
        self._keep_place(self.following)
        self._repaint()
        return folded

    def _keep_place(self, following: bool) -> None:
        """After the rows changed, scroll to where the scrubber stands, or else to the end if it was ``following``."""
        if self._spotlight is not None:
            self._reveal(self._spotlight)
        elif following:
            self.follow()

    def follow(self) -> None:
        """Go to the end and stay there."""
        self.following = True
        self._seen_rows = len(self.rows)
        self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)

    def action_follow(self) -> None:
        if self._spotlight is not None:
            self._spotlight = None
            self._cache.clear()
            self.post_message(self.Released())
        self.follow()
        self.refresh()

    def scroll_to(self, x: float | None = None, y: float | None = None, **how: Any) -> None:
        """Keys and the bar scroll a frame later: text that arrives till then must not take the view back."""
        if y is not None:
            self._follow_if(round(y) >= self.max_scroll_y)
        super().scroll_to(x, y, **how)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._follow_if(round(new_value) >= self.max_scroll_y)

    def _follow_if(self, at_end: bool) -> None:
        if self.following and not at_end:
            self._seen_rows = len(self.rows)
        self.following = at_end

    def on_resize(self, event: events.Resize) -> None:
        width = self.scrollable_content_region.width
        following = self.following
        if width != self._document.width:
            self._document.resize(width)
            self._cache.clear()
        self._update_size()
        self._keep_place(following or len(self.rows) <= self.size.height)  # an end in sight is followed

    def on_click(self, event: events.Click) -> None:
        if self._chip and event.y == self.size.height - 1 and event.x >= self._document.width - width_of(self._chip):
            self.action_follow()
            return
        piece = self._document.piece_at(self.scroll_offset.y + event.y, event.x)
        if piece is None or self.text_selection:
            return
        mark, index = piece
        if mark.token is not None:
            self.post_message(self.Picked(mark.turn, mark.token))
        elif mark.style == "version":
            self.post_message(self.Turned(index // 3, index % 3 - 1))
        elif mark.style == "fold":
            self.post_message(self.Unfolded(index))

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
        """The words in the corner that say how much stands below the view; empty at the end."""
        if self._spotlight is not None:
            return self._spotlight.label
        new = len(self.rows) - self._seen_rows
        below = self._joined(self.scroll_offset.y + self.size.height, len(self.rows))
        if self.following or not any(map(str.strip, below)):
            return ""
        return f" ↓ {new} new · End " if new > 0 else " ↓ End "

    # Drawing

    def render_line(self, y: int) -> Strip:
        """Row ``y`` of the view, with the offsets that Textual's mouse selection asks for."""
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
        """``strip`` with ``chip`` at the right end of the text: the column behind that is the scrollbar's."""
        cut = self._document.width - width_of(chip)
        segments = [*strip.crop(0, cut), Segment(chip, self._styles["chip"])]
        return Strip(segments).adjust_cell_length(strip.cell_length, self._styles["plain"])

    def _row_strip(self, index: int, width: int, selection: Selection | None) -> Strip:
        row = self.rows[index]
        if selection is not None and (chosen := selection.get_span(index)) is not None:
            first, last = chosen
            stop = len(row.text) if last == -1 else last
            return self._draw(cut_pieces(self._document.pieces(row), first, stop), width, row.start)
        cached = self._cache.get(index)
        if cached is not None and cached[0] == row and cached[1].cell_length == width:
            return cached[1]
        strip = self._draw(((text, mark, False) for text, mark in self._document.pieces(row)), width, row.start)
        if not self._landing.reaches(row.start + len(row.text)):
            self._cache[index] = (row, strip)
        return strip

    def _draw(self, pieces: Iterator[tuple[str, Mark, bool]], width: int, start: int) -> Strip:
        """A row whose text begins at character ``start``; pieces that are True are selected."""
        words: list[tuple[Style, str]] = []
        banded = False
        for text, mark, chosen in pieces:
            banded |= mark.style == "prompt"
            style, shown = self._appearance(mark, text, start)
            if banded and mark.style != "prompt":
                style += self._band
            words += styled_words(shown, style + self.selection_style if chosen else style)
            start += len(text)
        segments = [
            Segment("".join(text for _, text in group), style) for style, group in groupby(words, key=itemgetter(0))
        ]
        # The user's own words stand on a band; everything else on the background.
        return Strip(segments).adjust_cell_length(width, self._styles["prompt" if banded else "note"])

    def _appearance(self, mark: Mark, text: str, start: int) -> tuple[Style, str]:
        """How to draw a piece, and what: a text that is hidden leaves its room blank."""
        spot = self._spotlight
        if spot is None or start < self._frontier:
            role = role_of(mark, spot) if spot is not None else None
            style = self._styles[self._shade_of(mark, start, role == "step")]
            over = self._styles.get(role or "", Style())
            return (over + style if role == "step" else style + over), text
        if spot.hide:
            return self._styles["hidden"], " " * width_of(text)
        return self._styles["after"], text

    def _shade_of(self, mark: Mark, start: int, new: bool) -> str:
        if self._shader is None or mark.token is None:
            return self._landing.look(mark.style, start, new)
        return self._shader(mark.turn, mark.token) or "even"

    def _load_styles(self) -> None:
        self._styles = {
            name.removeprefix("token-log--"): self.get_component_rich_style(name) for name in self.COMPONENT_CLASSES
        }
        self._band = Style(bgcolor=self._styles["prompt"].bgcolor)
        # A band lies over what is there already.
        self._styles["step"] = Style(bgcolor=self._styles["step"].bgcolor)
        for shade, style in SHADE_STYLES.items():
            self._styles[shade] = (self.visual_style + self.app.stylesheet.parse_style(style)).rich_style

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
