"""The race: lanes run one after the other, each once and for all to see, then side by side on one clock at a pace one
can follow. Once that is over they run again, so that the figures are medians, while the result stands there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.export.document import Origin
from dflash_tui.core.export.formats import render
from dflash_tui.core.export.spans import token_spans
from dflash_tui.core.figures.labels import TIME_BARS, WRITTEN_BARS
from dflash_tui.core.files.saving import save_text
from dflash_tui.core.race.clock import LaneClock, RaceClock
from dflash_tui.core.race.race import Race, RaceResult
from dflash_tui.core.race.report import cut_off, how, race_document, race_remarks, race_table
from dflash_tui.core.rounds.pace import pace_words
from dflash_tui.core.text.counted import counted
from dflash_tui.core.text.harmless import sanitise
from engine.events import EngineError, Event, Step, TurnFinished, TurnStarted

from ..glyphs import fitting
from ..notices import tell_saved
from ..options import options_of
from ..widgets.passes import Reason
from ..widgets.race_drawing import ROOMY, factor_lines, fitted, lane_line, time_line, winner_lines, written
from ..widgets.token_log import TokenLog
from .keys import KeysScreen
from .once import DismissOnceScreen

FRAME, POLL = 1 / 30, 1 / 8
"""Seconds between two looks at the replay, and at the engine: while it is measured the screen keeps out of its way. An
answer's end is looked at once: a processor that idles meanwhile is slower at first."""
SLOWEST, FASTEST = 1e-4, 100.0
LARGE, ROWS_FOR_LARGE = 2, 44
"""How many times as large the winner's factor is drawn, on a screen with at least so many rows."""


class RaceScreen(DismissOnceScreen[RaceResult | None]):
    """Measures when it opens; leaves with the newest result, or None when there is none. It takes the engine's events
    until none are owed."""

    CSS_PATH = "race.tcss"
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (20, "-short"), (30, "-tall"), (ROWS_FOR_LARGE, "-high")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "stop, close"),
        Binding("space", "play", "pause, go on, or see it again"),
        Binding("minus", "change_pace(0.5)", "slower"),
        Binding("plus,equals_sign", "change_pace(2)", "faster"),
        Binding("down,j", "scroll(1)", "scroll the result"),
        Binding("up,k", "scroll(-1)", "scroll the result"),
        Binding("end,enter", "finish", "the result at once"),
        Binding("r", "again", "race again"),
        Binding("e", "export", "save as a page"),
        Binding("f1", "keys", "these keys"),
    ]
    MEASURING_KEYS, RACING_KEYS, OVER_KEYS = (
        ("F1 keys", "Esc stop"),
        ("Space pause", "End result", "− + pace", "F1 keys", "Esc close"),
        ("Space see it again", "e save as a page", "r race again", "F1 keys", "Esc close"),
    )
    BRIEF_OVER_KEYS = ("Space see it again", "e save", "r race again", "Esc close")

    def __init__(
        self,
        create: Callable[[], Race],
        queue: EventQueue,
        origin: Origin,
        out_dir: Path,
        moves: bool = True,
    ) -> None:
        """``create`` makes a race that has not been started. Without ``moves`` the lanes run when they are asked to."""
        super().__init__()
        self.race = create()
        self._create = create
        self._queue = queue
        self._origin = origin
        self._out_dir = out_dir
        self._moves = moves
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._answered = asyncio.Event()
        self._clock: RaceClock | None = None
        self._leaving = self._again = False
        self._last: RaceResult | None = None
        """The result of the race before this one; None in the first."""
        self._live_tokens = 0
        """How many tokens the run that is being measured has written."""

    def compose(self) -> ComposeResult:
        yield Static(id="race-title")
        yield Static(Content(sanitise(self.race.question)), id="race-question")
        if any("DFlash" in lane.name for lane in self.race.lanes):
            yield Reason(id="race-reason")
        with Horizontal(id="race-winner"):
            yield Static(id="race-factor")
            yield Static(id="race-words")
        for index, lane in enumerate(self.race.lanes):
            with Vertical(classes="lane"):
                yield Static(lane.name, id=f"lane-{index}", classes="lane-head")
                yield TokenLog(id=f"text-{index}", classes="shown")
        with VerticalScroll(id="race-result", can_focus=False):
            yield Static(id="race-table")
            yield Static(id="race-remarks")
        yield Static(id="race-keys")

    def on_mount(self) -> None:
        self._loop = asyncio.get_running_loop()
        for log in self.query(TokenLog):
            log.can_focus = False  # the keys are the race's
        self.run_worker(self._listen(), name="race")
        self._replay_timer = self.set_interval(FRAME, self._frame, pause=True)
        self._measure()

    def on_resize(self) -> None:
        self._draw_keys()
        if self._clock is not None:
            self._draw_lanes(self._clock)
        if self.replayed and self.race.result is not None:
            self._draw_result(self.race.result)

    def on_unmount(self) -> None:
        if self.race.idle:
            self._queue.diverted = None

    # Measuring

    def _measure(self) -> None:
        """Begin a race: run each lane once, in turn; what it writes shows as it comes."""
        self._queue.diverted = self._divert
        self._clock = None
        self._clear()
        self._draw_keys()
        self.race.pausing = True
        self.race.start()
        self._draw_progress()

    def _draw_keys(self) -> None:
        keys = self.MEASURING_KEYS if self._clock is None else self.OVER_KEYS if self.replayed else self.RACING_KEYS
        brief = self.BRIEF_OVER_KEYS if keys == self.OVER_KEYS else ()
        self.query_one("#race-keys", Static).update(fitting(keys, self.size.width - 4, brief))

    def _clear(self) -> None:
        """Empty the lanes and the result."""
        self.remove_class("-over")
        for index in range(len(self.race.lanes)):
            self.query_one(f"#text-{index}", TokenLog).clear()
            self._draw_bar(index, "  ", 0.0, "")

    def _divert(self, event: Event) -> None:
        """Take an event of the engine; called by its thread."""
        self._events.put(event)
        if isinstance(event, TurnFinished):
            with suppress(RuntimeError):  # the loop has been closed
                self._loop.call_soon_threadsafe(self._answered.set)

    async def _listen(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await self._answered.wait()
            self._answered.clear()
            if len(self.query(TokenLog)) < len(self.race.lanes):
                return  # the screen is being taken down
            self._poll()

    def _poll(self) -> None:
        """Hand the engine's events to the race; the next question goes out from here."""
        before, (lane, measured) = self.race.progress, self.race.running
        events = list(self._arrived())
        if measured and events and self._clock is None:
            self._draw_live(self.race.lanes.index(lane), events)
        shown = self.race.result
        for event in events:
            self.race.apply(event)
        if not events:
            return
        result = self.race.result
        if self.race.over and self.race.idle:
            self._settle()
        elif self._clock is None and self.race.idle and result is not None:
            self._start(result)
        elif self.replayed and result is not None and result is not shown:
            self._draw_result(result)
        elif self._clock is None and self.race.progress != before:
            self._draw_progress()

    def _arrived(self) -> Iterator[Event]:
        while True:
            try:
                yield self._events.get_nowait()
            except Empty:
                return

    def _settle(self) -> None:
        """Called when the engine has nothing more to say about this race."""
        self._queue.diverted = None
        if self.race.failure is not None:
            self._fail(self.race.failure)
        elif self._again:
            self._begin_again()
        elif self._leaving or self.race.result is None:
            self.dismiss(self.race.result or self._last)
        elif self.replayed:
            self._draw_result(self.race.result)
        elif self._clock is None:
            self._start(self.race.result)

    def _fail(self, failure: EngineError) -> None:
        if failure.fatal:
            self._queue.put(failure)  # the chat has to know that its engine is gone
        self.notify(f"{failure.message}\n{failure.hint}", title="No race", severity="error", timeout=10, markup=False)
        self.dismiss(None)

    def _draw_progress(self) -> None:
        """Say which lane is next. Called while it is warmed up: nothing is drawn beside a run that is measured."""
        lane, _ = self.race.running
        index = self.race.lanes.index(lane)
        self.query_one("#race-title", Static).update(
            Content.assemble(
                ("race ", "bold $primary"),
                f" {index + 1} of {len(self.race.lanes)}: ",
                (lane.name, "bold"),
                " · each lane once by itself, then all side by side",
            )
        )

    def _draw_live(self, index: int, events: Sequence[Event]) -> None:
        """Add to lane ``index`` what its measured run has written."""
        log = self.query_one(f"#text-{index}", TokenLog)
        if any(isinstance(event, TurnStarted) for event in events):
            log.clear()
            self._live_tokens = 0
        steps = [event for event in events if isinstance(event, Step)]
        ended = any(isinstance(event, TurnFinished) for event in events)
        if not (steps or ended):
            return
        self._live_tokens += sum(step.num_emitted for step in steps)
        log.append(list(token_spans(steps)))
        share = 1.0 if ended else self._live_tokens / self.race.lanes[index].settings.max_new_tokens
        self._draw_bar(index, "✓ " if ended else "▸ ", share, written(self._live_tokens))

    def _draw_bar(self, index: int, mark: str, share: float, figures: str) -> None:
        line = lane_line(index, self.race.lanes[index].name, self.size.width - 2, mark, share, figures)
        self.query_one(f"#lane-{index}", Static).update(line)

    # On one clock

    @property
    def replayed(self) -> bool:
        """Whether the lanes have been replayed to their end."""
        return self._clock is not None and self._clock.over

    def _start(self, result: RaceResult) -> None:
        """Replay ``result``: every lane from its first token, on one clock."""
        self.race.pausing = True
        self._clear()
        self._clock = clock = RaceClock(result)
        self._draw_keys()
        if self._moves:
            clock.play(monotonic())
            self._replay_timer.resume()
            self._frame()
        else:
            self.action_finish()

    def _frame(self) -> None:
        if self._clock is not None and not self._clock.over:
            self._show(self._clock, self._clock.tick(monotonic()))

    def _show(self, clock: RaceClock, ended: Sequence[list[Step]]) -> None:
        """The rounds that have ``ended`` in each lane since the last time, and the result behind the last."""
        for index, steps in enumerate(ended):
            if steps:
                self.query_one(f"#text-{index}", TokenLog).append(list(token_spans(steps)))
        if clock.over and self.race.result is not None:
            self._replay_timer.pause()
            self.add_class("-over")
            self._draw_keys()
            self._draw_result(self.race.result)
            self.race.go_on()
        else:
            self._draw_lanes(clock)

    def _draw_lanes(self, clock: RaceClock) -> None:
        """Draw bars as long as what the lanes have written by now."""
        for index, now in enumerate(clock.lanes):
            self._draw_lane(index, now, clock.most_tokens)
        self.query_one("#race-title", Static).update(
            Content.assemble(
                ("race ", "bold $primary"),
                (pace_words(clock.pace), "bold"),
                f" · {clock.seconds:.2f} of {clock.length:.2f} s{'' if clock.playing else ' · paused'}",
                (f" · {WRITTEN_BARS}", "$verdict-pending"),
            )
        )

    def _draw_lane(self, index: int, now: LaneClock, most_tokens: int) -> None:
        passes = f" in {counted(now.target_passes, 'pass'):<11}" if self.size.width - 2 >= ROOMY else ""
        taken = f" {now.seconds:6.2f} s" if now.over else ""
        mark = "✓ " if now.over else "▸ "
        self._draw_bar(index, mark, now.tokens / max(most_tokens, 1), f"{written(now.tokens)}{passes}{taken}")

    def _draw_result(self, result: RaceResult) -> None:
        """Draw bars as long as the time that each lane took, and how many times as fast the fastest was."""
        for index in range(len(result.lanes)):
            self.query_one(f"#lane-{index}", Static).update(time_line(result, index, self.size.width - 2))
        ascii = options_of(self).ascii
        scale = LARGE if self.size.height >= ROWS_FOR_LARGE else 1
        self.query_one("#race-factor", Static).update(factor_lines(result, ascii, scale))
        self.query_one("#race-words", Static).update(winner_lines(result, self.size.width < ROOMY))
        lines = fitted(race_table(result, brief=self.size.width < 110), self.size.width - 3)
        table = [Content.styled(lines[0], "$verdict-pending"), *(Content(line) for line in lines[1:])]
        self.query_one("#race-table", Static).update(Content("\n").join([*table, Content()]))
        remarks = [Content(remark) for remark in race_remarks(result)]
        note = Content.styled(how(result.sides), "$verdict-pending")
        self.query_one("#race-remarks", Static).update(Content("\n").join([*remarks, note]))
        runs, (_, heats) = len(result.lanes[0].runs), self.race.progress
        all_runs = heats // 2 // len(result.lanes)
        text = f"medians of {counted(runs, 'run')}" if runs == all_runs else f"run {runs} of {all_runs}, measuring on"
        text += f" · {cut_off(result)}" if cut_off(result) else ""
        meaning = (f" · {TIME_BARS}", "$verdict-pending")
        self.query_one("#race-title", Static).update(Content.assemble(("race ", "bold $primary"), f" {text}", meaning))

    # Keys

    def action_play(self) -> None:
        """Pause or go on; once all lanes are done, replay them."""
        clock, result = self._clock, self.race.result
        if clock is None or result is None:
            return
        if clock.over:
            self._moves = True  # it was asked for
            self._start(result)
            return
        self._frame()
        if clock.playing:
            clock.playing = False
        else:
            clock.play(monotonic())
        self._draw_lanes(clock)

    def action_change_pace(self, factor: float) -> None:
        if self._clock is not None and not self._clock.over:
            self._frame()
            self._clock.pace = min(max(self._clock.pace * factor, SLOWEST), FASTEST)
            self._draw_lanes(self._clock)

    def action_scroll(self, by: int) -> None:
        self.query_one("#race-result").scroll_relative(y=by, animate=False)

    def action_finish(self) -> None:
        """Show every lane at its end, and the result."""
        if self._clock is not None and not self._clock.over:
            self._show(self._clock, self._clock.advance(self._clock.length))

    def action_again(self) -> None:
        if self.replayed and not self.race.idle:
            self._again = True
            self.race.stop()
        elif self.race.idle:
            self._begin_again()

    def _begin_again(self) -> None:
        self._again = False
        self._last = self.race.result or self._last
        self.race = self._create()
        self._measure()

    def action_leave(self) -> None:
        if self.race.idle:
            self.dismiss(self.race.result or self._last)
            return
        self._leaving, self._again = True, False
        self.race.stop()
        self.query_one("#race-title", Static).update("stopping after the round in flight")

    def action_keys(self) -> None:
        self.app.push_screen(KeysScreen("The race", self))

    def action_export(self) -> None:
        if self.race.result is None:
            self.notify("There is something to save once the lanes have been measured.", timeout=4)
            return
        page = render(race_document(self.race.result, self._origin), "html")
        tell_saved(self, lambda: save_text(page, self._out_dir, "race.html"))
