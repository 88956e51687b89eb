"""The lesson and the tour: a page's text, and beside it the step view, a race or an answer of the recording."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from time import monotonic
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import Markdown, Static

from dflash_tui.core.export.formats import render
from dflash_tui.core.export.spans import token_spans
from dflash_tui.core.figures.labels import AS_FAST, STEPS
from dflash_tui.core.files.saving import save_text
from dflash_tui.core.lesson.course import Course, Factor, OneRound, Page, SideBySide, Written
from dflash_tui.core.lesson.document import document_of
from dflash_tui.core.race.clock import RaceClock
from dflash_tui.core.rounds.passes import PassRows
from dflash_tui.core.rounds.playback import PHASES

from ..glyphs import fitting, large_number
from ..notices import tell_saved
from ..options import options_of
from ..widgets.passes import passes_lines
from ..widgets.race_drawing import clock_lines
from ..widgets.rounds.large_round import LargeRound
from ..widgets.rounds.living_round import caption
from ..widgets.rounds.step_table import Scene, StepTable
from ..widgets.token_log import TokenLog
from .keys import KeysScreen
from .once import DismissOnceScreen

FRAME = 1 / 15
LEAD, REST = 1.0, 4.0
"""Seconds of a page that turns by itself before anything moves on it, and at its end, when all of it is there."""
ROWS_FOR_LARGE = 34
"""Rows from which on a screen has room for a round in large cells above its table."""
DIGITS = 30
"""Cells of a factor at the smallest scale, about."""


class CourseScreen(DismissOnceScreen[bool]):
    """Shows a course, and gives whether the chat is wanted next. A course that doesn't play itself is remembered with
    its page, and begins there the next time."""

    CSS_PATH = "course.tcss"
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide"), (150, "-vast")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (20, "-short"), (30, "-tall")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,n,pagedown", "turn(1)", "next page"),
        Binding("enter", "enter", "next page; on the last one, the chat"),
        Binding("left,b,pageup", "turn(-1)", "page before"),
        Binding("home", "go(0)", "first page"),
        Binding("end", "go(-1)", "last page"),
        Binding("space", "play", "play it, pause, or go on"),
        Binding("comma", "step(-1)", "round before"),
        Binding("full_stop", "step(1)", "next round"),
        Binding("down,j", "scroll(1)", "scroll"),
        Binding("up,k", "scroll(-1)", "scroll"),
        Binding("e", "export", "save as a page"),
        Binding("f1", "keys", "these keys"),
        Binding("escape,q", "leave", "leave"),
    ]

    def __init__(self, course: Course, out_dir: Path) -> None:
        super().__init__()
        self.course = course
        self.index = 0 if course.plays else course.read_place()
        """The page on show, counted from 0; from ``len(course.pages)`` on it is one for experts."""
        self.playing = False
        self.seconds = 0.0
        """Seconds that the page has played."""
        self.round = 0
        """The round on show, on a page that shows one."""
        self._resumed = self.index > 0
        self._out_dir = out_dir
        self._seen = 0.0
        self._written = 0
        """How many rounds of the page's answer are written."""

    def compose(self) -> ComposeResult:
        yield Static(id="course-head")
        yield Static(id="course-title")
        with Container(id="course-body"):
            with VerticalScroll(id="course-text", can_focus=False):
                yield Markdown(id="course-words")
            with Container(id="course-view"):
                yield LargeRound(id="course-large")
                yield StepTable(id="course-round")
                yield TokenLog(id="course-answer", classes="shown")
                yield Static(id="course-picture")
        yield Static(id="course-keys")

    async def on_mount(self) -> None:
        self.set_class(self.course.plays, "-hall")
        self.query_one(TokenLog).can_focus = False  # the keys are the course's
        await self._open()
        self._seen = monotonic()
        self.set_interval(FRAME, self._frame)

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    # Pages

    @property
    def page(self) -> Page:
        return (*self.course.pages, *self.course.behind)[self.index]

    @property
    def last(self) -> int:
        return len(self.course.pages) - 1

    async def action_turn(self, by: int) -> None:
        await self._go(min(max(self.index + by, 0), self.last + len(self.course.behind)))

    async def action_go(self, page: int) -> None:
        """Go to a page, counted from 0, or from the course's last page back if negative."""
        await self._go(range(self.last + 1)[page])

    async def action_enter(self) -> None:
        if self.index < self.last:
            await self.action_turn(1)
        else:
            self.dismiss(True)

    async def _go(self, page: int) -> None:
        if page == self.index:
            return
        self.index = page
        self._resumed = False
        if not self.course.plays:
            self.course.keep_place(page)
        await self._open()

    async def _open(self) -> None:
        page = self.page
        view = page.view
        self.seconds, self._written = 0.0, 0
        self.playing = self._moves and (self.course.plays or not isinstance(view, OneRound))
        if not self.playing:
            self.seconds = page.seconds
        self.round = view.index if isinstance(view, OneRound) else 0
        self.query_one("#course-title", Static).update(Content(page.title))
        self.query_one("#course-text").scroll_home(animate=False)
        self.query_one("#course-view").display = view is not None
        self.query_one("#course-text").set_class(view is None, "-alone")
        picture, round_ = self.query_one("#course-picture"), isinstance(view, OneRound)
        picture.display = self.course.plays if round_ else not isinstance(view, Written | None)
        picture.set_class(round_, "-caption")
        self.query_one(LargeRound).display = self.query_one(StepTable).display = round_
        self.query_one("#course-answer").display = isinstance(view, Written)
        self.query_one(TokenLog).clear()
        await self.query_one(Markdown).update(page.text)
        self.draw()
        self.call_after_refresh(self.draw)  # by then the text has its room

    # Playing

    @property
    def _moves(self) -> bool:
        return not options_of(self).reduced_motion

    @property
    def share(self) -> float:
        """How much of the page's movement has been seen, in [0, 1]."""
        lead, rest = (LEAD, REST) if self.course.plays else (0.0, 0.0)
        return min(max((self.seconds - lead) / (self.page.seconds - lead - rest), 0.0), 1.0)

    @property
    def over(self) -> bool:
        """Whether nothing moves any more, unless it is asked to."""
        return self.seconds >= self.page.seconds

    async def _frame(self) -> None:
        now = monotonic()
        passed, self._seen = now - self._seen, now
        if self.playing and self.is_current:
            await self.advance(passed)

    async def advance(self, seconds: float) -> None:
        """Let so many seconds pass."""
        self.seconds = min(self.seconds + seconds, self.page.seconds)
        self.playing = not self.over
        if self.over and self.course.plays and self.index < self.last:
            await self.action_turn(1)
        else:
            self.draw()

    async def action_play(self) -> None:
        if not self.over:
            self.playing = not self.playing
            self.draw()
            return
        if self.course.plays and self.index == self.last:
            await self.action_go(0)
        self.seconds, self.playing = 0.0, True
        self.draw()

    async def on_key(self, event: events.Key) -> None:
        """Any key that is bound to nothing pauses a course that plays itself."""
        bound = {key for binding in self.BINDINGS if isinstance(binding, Binding) for key in binding.key.split(",")}
        if self.course.plays and event.key not in bound:
            event.stop()
            self.playing = False
            self.draw()

    def action_step(self, by: int) -> None:
        """Show the round ``by`` further than the one on show."""
        view = self.page.view
        if isinstance(view, OneRound):
            self.round = min(max(self.round + by, 0), len(view.answer.rounds) - 1)
            self.playing, self.seconds = False, self.page.seconds
            self.draw()

    # Drawing

    def draw(self) -> None:
        """Draw the page as it stands after its seconds; nothing once this screen is taken away."""
        if self.is_gone:
            return
        self._draw_lines()
        match self.page.view:
            case Written(answer):
                self._write(round(self.share * len(answer.rounds)))
            case OneRound() as view:
                self._draw_round(view)
            case SideBySide() as view:
                clock = RaceClock(view.result)
                clock.advance(self.share * clock.length)
                room = self.query_one("#course-picture").content_size
                self._picture(clock_lines(clock, max(room.width, 40), room.height))
            case PassRows() as view:
                room = self.query_one("#course-picture").content_size
                self._picture(passes_lines(view, max(room.width, 40), room.height, self.share))
            case Factor(times):
                self._picture(self._digits(times))

    def _draw_lines(self) -> None:
        """The first line, which says how far the course has come, and the last, with the keys."""
        pages, width = self.course.pages, self.size.width - 4
        if self.course.plays:
            text = f"{self.index + 1} of {len(pages)}{'' if self.playing else ' · paused' if not self.over else ''}"
            room = max(width - len(text) - 2, 4)
            seconds = sum(page.seconds for page in pages[: self.index]) + self.seconds
            full = min(round(seconds / self.course.seconds * room), room)
            head = Content.assemble(("━" * full, "$primary"), ("─" * (room - full), "$foreground 25%"), f"  {text}")
        else:
            behind = self.index - self.last
            dots = "●" * min(self.index + 1, len(pages)) + "○" * max(-behind, 0)
            text = f"{self.index + 1} of {len(pages)}"
            if behind > 0:
                text = f"for experts, {behind} of {len(self.course.behind)}"
            note = " · you left here; Home begins again" if self._resumed else ""
            head = Content.assemble((self.course.title, "bold $primary"), f"  {dots}  {text}{note}")
        self.query_one("#course-head", Static).update(head)
        self.query_one("#course-keys", Static).update(fitting(self._keys(), width))

    def _keys(self) -> list[str]:
        """The keys that lead somewhere from this page, the last the way out."""
        view = self.page.view
        play = "" if view is None else "Space pause" if self.playing else "Space again" if self.over else "Space go on"
        if self.course.plays:
            return [play, "← → page", "F1 keys", "Esc leave"]
        keys = [
            "↓ more" if self.query_one("#course-text").max_scroll_y > 0 else "",
            "→ next" if self.index < self.last else "Enter opens the chat",
            "→ for experts" if self.index == self.last and self.course.behind else "",
            play,
            ", . rounds" if isinstance(view, OneRound) else "",
            "← back" if self.index else "",
            "F1 keys",
            "e save page",
            "Esc leave",
        ]
        return [key for key in keys if key]

    def _write(self, due: int) -> None:
        """Write the page's answer up to round ``due``."""
        view = self.page.view
        assert isinstance(view, Written)
        log = self.query_one(TokenLog)
        if due < self._written:
            log.clear()
            self._written = 0
        if due > self._written:
            log.append(list(token_spans(islice(view.answer.rounds.steps(self._written), due - self._written))))
            self._written = due
            if due == len(view.answer.rounds) and not self.course.plays:
                log.scroll_home(animate=False)

    def _draw_round(self, view: OneRound) -> None:
        """The step view of the round: in large cells for a hall, else the table, and both where there is room."""
        inspection = view.inspection(self.round)
        phase = PHASES[min(int(self.share * len(PHASES)), len(PHASES) - 1)]
        title = f"round {inspection.step.index} of {len(view.answer.rounds) - 1}"
        scene = Scene(inspection, phase=phase, title=title, aside=(view.answer.question,), phases=self.playing)
        large, table = self.query_one(LargeRound), self.query_one(StepTable)
        large.display = self.course.plays or self.size.height >= ROWS_FOR_LARGE
        table.display = not self.course.plays
        large.show(scene)
        table.show(scene)
        if self.course.plays:
            self._picture([caption(scene)], centred=False)

    def _picture(self, lines: list[Content], *, centred: bool = True) -> None:
        picture = self.query_one("#course-picture", Static)
        above = max((picture.content_size.height - len(lines)) // 2, 0) if centred else 0
        picture.update(Content("\n").join([*[Content()] * above, *lines]))

    def _digits(self, times: float) -> list[Content]:
        room = self.query_one("#course-picture").content_size
        scale = max(min(room.width // DIGITS, room.height // 4, 4), 1)
        digits = large_number(f"{times:.1f}×", options_of(self).ascii, scale)
        return [*(Content.styled(row, "bold $verdict-bonus") for row in digits), Content(), Content(AS_FAST)]

    # Keys

    def action_scroll(self, by: int) -> None:
        """Scroll the text by ``by`` rows; at its end scroll the answer under it."""
        text = self.query_one("#course-text")
        at_end = text.scroll_y >= text.max_scroll_y if by > 0 else text.scroll_y <= 0
        log = self.query_one(TokenLog)
        (log if at_end and log.display else text).scroll_relative(y=by, animate=False)

    def action_export(self) -> None:
        page, name = render(document_of(self.course), "html"), "tour.html" if self.course.plays else "lesson.html"
        tell_saved(self, lambda: save_text(page, self._out_dir, name))

    def action_keys(self) -> None:
        self.app.push_screen(KeysScreen(self.course.title, self, STEPS))

    def action_leave(self) -> None:
        self.dismiss(False)
