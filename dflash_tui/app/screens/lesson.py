"""The lesson: a page of text and what it speaks of, taken from a recorded conversation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from dflash_tui.core.export.document import Origin
from dflash_tui.core.export.formats import render
from dflash_tui.core.export.spans import token_spans
from dflash_tui.core.figures.labels import STEPS
from dflash_tui.core.files.saving import save_text
from dflash_tui.core.lesson.pages import Figure, Page, lesson_document
from dflash_tui.core.lesson.parsing import OF_A_ROUND, FigureKind, Lesson
from dflash_tui.core.lesson.progress import keep_place, read_place
from dflash_tui.core.race.clock import RaceClock
from dflash_tui.core.rounds.pace import pace_words
from dflash_tui.core.rounds.playback import PHASES

from ..notices import tell_saved
from ..options import options_of
from ..widgets.lesson_chart import histogram_lines, spread, times_lines
from ..widgets.lesson_drawn import inked
from ..widgets.race_drawing import clock_lines
from ..widgets.rounds.large_round import LargeRound
from ..widgets.rounds.step_table import Scene, StepTable
from ..widgets.token_log import TokenLog
from .keys import KeysScreen
from .once import LeavesOnce

FRAME = 1 / 30
MOMENT: dict[FigureKind, float] = {"copy": 4.0, "experts": 0.4}
"""Seconds that a moment of a picture stands which plays by itself."""
ROWS_FOR_LARGE = 34
"""Rows from which on a screen has room for a round in large cells above its table."""


class LessonScreen(LeavesOnce[bool]):
    """Shows a lesson. Gives whether the chat is wanted next. Remembers its page whenever that changes, and begins with
    the one it was left at."""

    CSS_PATH = "lesson.tcss"
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide"), (150, "-vast")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (20, "-short"), (30, "-tall")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,n,pagedown", "turn(1)", "next page"),
        Binding("enter", "enter", "next page; on the last one, the chat"),
        Binding("left,b,pageup", "turn(-1)", "page before"),
        Binding("home", "go(0)", "first page"),
        Binding("end", "go(-1)", "last page"),
        Binding("space", "play", "play the figure"),
        Binding("comma", "step(-1)", "round before"),
        Binding("full_stop", "step(1)", "next round"),
        Binding("down,j", "scroll(1)", "scroll"),
        Binding("up,k", "scroll(-1)", "scroll"),
        Binding("e", "export", "save as a page"),
        Binding("f1", "keys", "these keys"),
        Binding("escape,q", "leave", "leave"),
    ]

    def __init__(self, lesson: Lesson, pages: Sequence[Page], origin: Origin, out_dir: Path) -> None:
        super().__init__()
        self.lesson = lesson
        self.pages = pages
        self.place = read_place(lesson)
        """The page that is shown, counted from 0."""
        self._origin = origin
        self._out_dir = out_dir
        self._round = 0
        self._moment = 0
        """Which moment of the page's picture is on show, counted from 0 and below ``Figure.num_moments``."""
        self._next: float | None = None
        """When the picture's next moment comes, by the clock; None while it stands still."""
        self._clock: RaceClock | None = None
        self._resumed = self.place > 0

    def compose(self) -> ComposeResult:
        yield Static(id="lesson-head")
        yield Static(id="lesson-title")
        with Container(id="lesson-body"):
            with VerticalScroll(id="lesson-text", can_focus=False):
                yield Static(id="lesson-words")
            with Container(id="lesson-figure"):
                yield LargeRound(id="lesson-large")
                yield StepTable(id="lesson-round")
                yield TokenLog(id="lesson-answer", classes="shown")
                yield Static(id="lesson-chart")
        yield Static(id="lesson-keys")

    def on_mount(self) -> None:
        self.query_one(TokenLog).can_focus = False  # the keys are the lesson's
        self.set_interval(FRAME, self._frame)
        self._show()

    def on_resize(self) -> None:
        self._draw_head()
        self._draw_figure()

    @property
    def figure(self) -> Figure | None:
        return self.pages[self.place].figure

    # Pages

    def action_turn(self, by: int) -> None:
        self.action_go(min(max(self.place + by, 0), len(self.pages) - 1))

    def action_go(self, place: int) -> None:
        """Go to a page, counted from 0; negative numbers count back from the last."""
        self.place = range(len(self.pages))[place]
        self._resumed = False
        keep_place(self.lesson, self.place)
        self._show()

    def action_enter(self) -> None:
        if self.place == len(self.pages) - 1:
            self.dismiss(True)
        else:
            self.action_turn(1)

    def action_keys(self) -> None:
        self.app.push_screen(KeysScreen("The lesson", self, STEPS))

    def action_leave(self) -> None:
        self.dismiss(False)

    def action_scroll(self, by: int) -> None:
        """Scroll the text by ``by`` rows; at its end scroll the answer under it."""
        text = self.query_one("#lesson-text")
        at_end = text.scroll_y >= text.max_scroll_y if by > 0 else text.scroll_y <= 0
        log = self.query_one(TokenLog)
        (log if at_end and log.display else text).scroll_relative(y=by, animate=False)

    def _show(self) -> None:
        page = self.pages[self.place]
        self._round = 0 if page.figure is None else page.figure.round
        self._moment = 0 if page.figure is None else page.figure.still
        self._clock = self._next = None
        self.query_one("#lesson-title", Static).update(Content(page.title))
        self.query_one("#lesson-words", Static).update(Content(page.text))
        self.query_one("#lesson-text").scroll_home(animate=False)
        self._draw_head()
        self._choose_widget(page.figure)
        if page.figure is not None and page.figure.kind not in OF_A_ROUND and self._moves:
            self.action_play()
        self._draw_figure()
        self.call_after_refresh(self._draw_laid_out)

    def _draw_laid_out(self) -> None:
        """What depends on how much room the text has and takes."""
        self._draw_figure()
        self.query_one("#lesson-keys", Static).update(self._keys())

    def _draw_head(self) -> None:
        dots = "●" * (self.place + 1) + "○" * (len(self.pages) - self.place - 1)
        note = " · you left here; Home begins again" if self._resumed else ""
        self.query_one("#lesson-head", Static).update(
            Content.assemble(
                (self.lesson.title, "bold $primary"), f"  {dots}  {self.place + 1} of {len(self.pages)}{note}"
            )
        )
        self.query_one("#lesson-keys", Static).update(self._keys())

    def _keys(self) -> str:
        """The keys that lead somewhere from this page, as many as there is room for."""
        doing = {"round": "Space plays it · , . rounds", "race": "Space plays it, or pauses"}
        doing |= dict.fromkeys(("answer", *MOMENT), doing["race"])
        doing["memory"] = doing["round"]
        keys = [
            "↓ more" if self.query_one("#lesson-text").max_scroll_y > 0 else "",
            "→ next" if self.place < len(self.pages) - 1 else "Enter opens the chat",
            doing.get(self.figure.kind, "") if self.figure else "",
            "Esc leave",
            "← back" if self.place else "",
            "F1 keys",
            "e save page",
        ]
        room = self.query_one("#lesson-keys").content_size.width
        while len(line := " · ".join(filter(None, keys))) > room and len(keys) > 1:
            keys.pop()
        return line

    def _choose_widget(self, figure: Figure | None) -> None:
        kind = "" if figure is None else figure.kind
        frame = self.query_one("#lesson-figure")
        frame.display = figure is not None
        frame.set_class(kind == "round" and self.size.height >= ROWS_FOR_LARGE, "-large")
        self.query_one("#lesson-round").display = kind == "round"
        self.query_one("#lesson-answer").display = kind == "answer"
        self.query_one("#lesson-chart").display = kind not in ("", "round", "answer")
        self.query_one("#lesson-text").set_class(figure is None, "-alone")
        log = self.query_one(TokenLog)
        log.clear()
        if figure is not None and kind == "answer":
            log.append(list(token_spans(figure.answers[0].steps)))
            log.scroll_home(animate=False)

    @property
    def _moves(self) -> bool:
        return not options_of(self).reduced_motion

    # Figures

    def _draw_figure(self) -> None:
        figure = self.figure
        if figure is None:
            return
        chart = self.query_one("#lesson-chart", Static)
        room = self.query_one("#lesson-figure").content_size
        width = max(room.width, 40)
        match figure.kind:
            case "answer":
                self._draw_answer(figure)
            case "round":
                self.query_one("#lesson-figure").set_class(self.size.height >= ROWS_FOR_LARGE, "-large")
                self.query_one(StepTable).show(self._scene(figure))
                self.query_one(LargeRound).show(self._scene(figure))
            case "memory" | "copy" | "experts":
                chart.update(inked(figure.lines(self._round, self._moment, width)))
            case "histogram":
                chart.update(Content("\n").join(histogram_lines(figure.answers, width, room.height)))
            case "times":
                chart.update(Content("\n").join(spread(times_lines(figure.answers, width), room.height)))
            case "race":
                self._draw_race(figure, width)

    def _scene(self, figure: Figure) -> Scene:
        inspection = figure.inspection(self._round)
        phase = PHASES[self._moment]
        answer = figure.answers[0]
        playing = self._moment < len(PHASES) - 1
        title = f"round {inspection.step.index} of {len(answer.steps) - 1}"
        return Scene(inspection, phase=phase, title=title, notes=(answer.question,), phases=playing)

    def _draw_race(self, figure: Figure, width: int) -> None:
        if self._clock is None:
            clock = RaceClock(figure.race())
            clock.advance(clock.length)
        else:
            clock = self._clock
            clock.tick(monotonic())
        room = self.query_one("#lesson-figure").content_size.height
        paused = "" if clock.playing or clock.over else ", paused"
        pace = Content.styled(f"{pace_words(clock.pace)}{paused}", "$verdict-pending")
        lines = [*clock_lines(clock, width, room - 2), Content(), pace]
        self.query_one("#lesson-chart", Static).update(Content("\n").join(lines))

    def _draw_answer(self, figure: Figure) -> None:
        """Draw the page's answer as far as it has been written by now; all of it where nothing plays."""
        if self._clock is not None:
            for steps in self._clock.tick(monotonic()):
                self.query_one(TokenLog).append(list(token_spans(steps)))

    def _frame(self) -> None:
        clock, figure = self._clock, self.figure
        if figure is not None and self._next is not None and monotonic() >= self._next:
            self._moment += 1
            self._go_on(figure)
            self._draw_figure()
        if clock is None or figure is None:
            return
        self._draw_figure()
        if clock.over:
            self._clock = None

    def action_play(self) -> None:
        """Pause a picture that plays by itself, go on, or play it again; of a round show the next phase."""
        figure = self.figure
        if figure is None:
            return
        if figure.kind in ("race", "answer") and self._clock is not None:
            self._pause(self._clock)
        elif figure.kind in ("race", "answer"):
            if figure.kind == "answer":
                self.query_one(TokenLog).clear()
            self._clock = RaceClock(figure.race())
            self._clock.play(monotonic())
        elif figure.kind in OF_A_ROUND:
            self._moment = (self._moment + 1) % len(PHASES)
            self._draw_figure()
        elif self._next is not None:
            self._next = None
        elif figure.kind in MOMENT:
            self._moment %= max(figure.num_moments - 1, 1)  # at the last one it begins again
            self._go_on(figure)
            self._draw_figure()

    def _go_on(self, figure: Figure) -> None:
        """Show the picture's next moment when its time has come, until the last one stands there."""
        last = self._moment >= figure.num_moments - 1
        self._next = None if last else monotonic() + MOMENT[figure.kind]

    def _pause(self, clock: RaceClock) -> None:
        clock.tick(monotonic())
        if clock.playing:
            clock.playing = False
        else:
            clock.play(monotonic())

    def action_step(self, by: int) -> None:
        """Show the round, or the picture's moment, ``by`` further than the one on show."""
        figure = self.figure
        if figure is not None and figure.kind in OF_A_ROUND:
            self._round = min(max(self._round + by, 0), len(figure.answers[0].steps) - 1)
            self._moment = len(PHASES) - 1
            self._draw_figure()
        elif figure is not None and figure.kind in MOMENT:
            self._next = None
            self._moment = min(max(self._moment + by, 0), figure.num_moments - 1)
            self._draw_figure()

    def action_export(self) -> None:
        page = render(lesson_document(self.lesson, self.pages, self._origin), "html")
        tell_saved(self, lambda: save_text(page, self._out_dir, "lesson.html"))
