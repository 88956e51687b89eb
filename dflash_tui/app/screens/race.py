"""The race: lanes measured one after the other, live, then side by side on one clock at a pace one can follow. What
came out of it is told when the last lane is done."""

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
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.export.document import Origin, Table
from dflash_tui.core.export.formats import render
from dflash_tui.core.export.spans import table_lines, token_spans
from dflash_tui.core.files.saving import save_text
from dflash_tui.core.race.clock import LaneClock, RaceClock
from dflash_tui.core.race.opponent import Opponent
from dflash_tui.core.race.race import Race, RaceResult
from dflash_tui.core.race.report import how, race_document, race_remarks, race_table
from dflash_tui.core.rounds.pace import pace_words
from dflash_tui.core.text.harmless import sanitise
from engine.events import EngineError, EngineReady, Event, Step, TurnFinished, TurnStarted

from ..glyphs import fitting
from ..notices import tell_saved
from ..widgets.token_log import TokenLog
from .once import LeavesOnce

FRAME, POLL = 1 / 30, 1 / 6
"""Seconds between two looks at the replay, and at the engine: while it is measured the screen keeps out of its way. An
answer's end is looked at once: a processor that idles meanwhile is slower at first."""
BAR = 20
"""Cells of the measuring's progress."""
NAME, FIGURES, BRIEF_FIGURES, ROOMY = 22, 36, 22, 90
"""Cells of a lane's mark and name, and of its figures; those with the passes want so wide a screen."""
SLOWEST, FASTEST = 1e-4, 100.0


class RaceScreen(LeavesOnce[RaceResult | None]):
    """Measures when it opens; leaves with the newest result, or None when there is none. It takes the engine's events
    until none are owed."""

    CSS_PATH = "race.tcss"
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (20, "-short"), (30, "-tall")]
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
    ]
    MEASURING_KEYS, RACING_KEYS, OVER_KEYS = (
        ("Esc stop",),
        ("Space pause", "End result", "− + pace", "Esc close"),
        ("Space see it again", "e save as a page", "r race again", "Esc close"),
    )
    BRIEF_OVER_KEYS = ("Space see it again", "e save", "r race again", "Esc close")

    def __init__(
        self,
        create: Callable[[], Race],
        queue: EventQueue,
        origin: Origin,
        out_dir: Path,
        opponent: Opponent | None = None,
        moves: bool = True,
    ) -> None:
        """``create`` makes a race that has not been started. Without ``moves`` the lanes run when they are asked to."""
        super().__init__()
        self.race = create()
        self._create = create
        self._queue = queue
        self._origin = origin
        self._out_dir = out_dir
        self._opponent = opponent
        self._moves = moves
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._answered = asyncio.Event()
        self._clock: RaceClock | None = None
        self._leaving = False
        self._last: RaceResult | None = None
        """Of the race before this one."""
        self._live_tokens = 0
        """Of the run that is being measured."""

    def compose(self) -> ComposeResult:
        yield Static(id="race-title")
        yield Static(Content(sanitise(self.race.question)), id="race-question")
        for place, lane in enumerate(self.race.lanes):
            with Vertical(classes="lane"):
                yield Static(lane.name, id=f"lane-{place}", classes="lane-head")
                yield TokenLog(id=f"text-{place}")
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
        if self._opponent is None:
            self._measure()
        else:
            self.query_one("#race-title", Static).update(f"waiting for {self.race.lanes[-1].name}")
            self._opponent.start(self._divert)

    def on_resize(self) -> None:
        self._draw_keys()
        if self._clock is not None:
            self._draw_lanes(self._clock)
        if self.replayed and self.race.result is not None:
            self._draw_result(self.race.result)

    def on_unmount(self) -> None:
        if self.race.idle:
            self._queue.diverted = None
        if self._opponent is not None:
            self._opponent.end()

    # Measuring

    def _measure(self) -> None:
        self._queue.diverted = self._divert
        self._clock = None
        self._clear()
        self.query_one("#race-remarks", Static).update(Content.styled(how(self.race.sides), "$verdict-pending"))
        self.query_one("#race-result").display = True
        self._draw_keys()
        self.race.start()
        self._draw_progress()

    def _draw_keys(self) -> None:
        keys = self.MEASURING_KEYS if self._clock is None else self.OVER_KEYS if self.replayed else self.RACING_KEYS
        brief = self.BRIEF_OVER_KEYS if keys == self.OVER_KEYS else ()
        self.query_one("#race-keys", Static).update(fitting(keys, self.size.width - 4, brief))

    def _clear(self) -> None:
        """Lanes without text, and no result."""
        for place, lane in enumerate(self.race.lanes):
            self.query_one(f"#text-{place}", TokenLog).clear()
            self.query_one(f"#lane-{place}", Static).update(Content.assemble("  ", (lane.name, "bold")))
        self.query_one("#race-table", Static).update("")
        self.query_one("#race-remarks", Static).update("")

    def _divert(self, event: Event) -> None:
        """Called by the engine thread."""
        self._events.put(event)
        if isinstance(event, EngineReady | TurnFinished):
            with suppress(RuntimeError):  # the loop has been closed
                self._loop.call_soon_threadsafe(self._answered.set)

    async def _listen(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await self._answered.wait()
            self._answered.clear()
            self._poll()

    def _poll(self) -> None:
        """Hand the engine's events to the race; the next question goes out from here."""
        before, (lane, measured) = self.race.progress, self.race.running
        events = list(self._arrived())
        if measured and events:
            self._draw_live(self.race.lanes.index(lane), events)
        for event in events:
            if isinstance(event, EngineReady):
                self._meet(event)
            else:
                self.race.apply(event)
        if events and self.race.over and self.race.idle:
            self._settle()
        elif self.race.progress != before and not self.race.running[1]:
            self._draw_progress()

    def _meet(self, ready: EngineReady) -> None:
        """The opponent can be asked."""
        if self._opponent is not None:
            self._opponent.ready = ready
        self.race.sides += (ready,)
        self._measure()

    def _arrived(self) -> Iterator[Event]:
        while True:
            try:
                yield self._events.get_nowait()
            except Empty:
                return

    def _settle(self) -> None:
        """The engine has nothing more to say about this race."""
        self._queue.diverted = None
        if self.race.failure is not None:
            self._fail(self.race.failure)
        elif self._leaving or self.race.result is None:
            self.dismiss(self.race.result or self._last)
        else:
            self._start(self.race.result)

    def _fail(self, failure: EngineError) -> None:
        if failure.fatal and not (self._opponent is not None and self._opponent.failed):
            self._queue.put(failure)  # the chat has to know that its engine is gone
        self.notify(f"{failure.message}\n{failure.hint}", title="No race", severity="error", timeout=10, markup=False)
        self.dismiss(None)

    def _draw_progress(self) -> None:
        """While a lane is warmed up, so that nothing is drawn beside a run that is measured."""
        done, total = (heats // 2 for heats in self.race.progress)
        lane, _ = self.race.running
        full = round(done / total * BAR)
        self.query_one("#race-title", Static).update(
            Content.assemble(
                ("race ", "bold $primary"),
                ("━" * full, "$primary"),
                ("─" * (BAR - full), "$foreground 25%"),
                f"  measuring, {done} of {total} runs · {lane.name}",
            )
        )

    def _draw_live(self, place: int, events: Sequence[Event]) -> None:
        """What a measured run has written, as it comes."""
        log = self.query_one(f"#text-{place}", TokenLog)
        if any(isinstance(event, TurnStarted) for event in events):
            log.clear()
            self._live_tokens = 0
        steps = [event for event in events if isinstance(event, Step)]
        if not steps:
            return
        self._live_tokens += sum(len(step.emitted) for step in steps)
        log.append(list(token_spans(steps)))
        self.query_one(f"#lane-{place}", Static).update(
            Content.assemble(
                ("▸ ", "$verdict-bonus"), (f"{self.race.lanes[place].name:<20} ", "bold"), f"{self._live_tokens} tokens"
            )
        )

    # On one clock

    @property
    def replayed(self) -> bool:
        """The lanes have come to their end."""
        return self._clock is not None and self._clock.over

    def _start(self, result: RaceResult) -> None:
        """Every lane from its first token."""
        self._clear()
        self.query_one("#race-result").display = False
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
        for place, steps in enumerate(ended):
            if steps:
                self.query_one(f"#text-{place}", TokenLog).append(list(token_spans(steps)))
        self._draw_lanes(clock)
        if clock.over and self.race.result is not None:
            self._replay_timer.pause()
            self.query_one("#race-result").display = True
            self._draw_keys()
            self._draw_result(self.race.result)

    def _draw_lanes(self, clock: RaceClock) -> None:
        for place, now in enumerate(clock.lanes):
            self._draw_lane(place, now, clock.most_tokens)
        if not clock.over:
            self.query_one("#race-title", Static).update(
                Content.assemble(
                    ("race ", "bold $primary"),
                    (pace_words(clock.pace), "bold"),
                    f" · {clock.seconds:.2f} of {clock.length:.2f} s{'' if clock.playing else ' · paused'}",
                )
            )

    def _draw_lane(self, place: int, now: LaneClock, most_tokens: int) -> None:
        """A bar as long as what the lane has written."""
        width = self.size.width - 2
        roomy = width >= ROOMY
        room = max(width - NAME - (FIGURES if roomy else BRIEF_FIGURES), 4)
        full = round(now.tokens / max(most_tokens, 1) * room)
        passes = f" in {now.target_passes:>4} passes" if roomy else ""
        taken = f" {now.seconds:6.2f} s" if now.over else ""
        self.query_one(f"#lane-{place}", Static).update(
            Content.assemble(
                ("✓ " if now.over else "▸ ", "$verdict-bonus"),
                (f"{now.lane.lane.name:<{NAME - 2}.{NAME - 3}}", "bold"),
                ("━" * full, "$primary"),
                ("─" * (room - full), "$foreground 25%"),
                f" {now.tokens:>4} tokens{passes}",
                (taken, "bold"),
            )
        )

    def _draw_result(self, result: RaceResult) -> None:
        lines = _fitted(race_table(result, brief=self.size.width < 110), self.size.width - 3)
        table = [Content.styled(lines[0], "$verdict-pending"), *(Content(line) for line in lines[1:])]
        self.query_one("#race-table", Static).update(Content("\n").join([*table, Content()]))
        remarks = [Content(remark) for remark in race_remarks(result)]
        note = Content.styled(how(result.sides), "$verdict-pending")
        self.query_one("#race-remarks", Static).update(Content("\n").join([*remarks, note]))
        best = max(result.lanes[1:], key=result.speed_up)
        self.query_one("#race-title", Static).update(
            Content.assemble(
                ("race ", "bold $primary"),
                (f"{result.speed_up(best):.2f}× ", "bold $verdict-bonus"),
                f"{best.lane.name} against {result.lanes[0].lane.name}",
            )
        )

    # Keys

    def action_play(self) -> None:
        """Pause or go on; once all lanes are done, see them again."""
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
        """Every lane to its end, and the result."""
        if self._clock is not None and not self._clock.over:
            self._show(self._clock, self._clock.advance(self._clock.length))

    def action_again(self) -> None:
        if self.race.idle:
            self._last = self.race.result or self._last
            self.race = self._create()
            if self._opponent is not None and self._opponent.ready is not None:
                self.race.sides += (self._opponent.ready,)
            self._measure()

    def action_leave(self) -> None:
        if self.race.idle:
            self.dismiss(self.race.result or self._last)
            return
        self._leaving = True
        self.race.stop()
        self.query_one("#race-title", Static).update("stopping after the round in flight")

    def action_export(self) -> None:
        if self.race.result is None:
            self.notify("There is something to save once the lanes have been measured.", timeout=4)
            return
        page = render(race_document(self.race.result, self._origin), "html")
        tell_saved(self, lambda: save_text(page, self._out_dir, "race.html"))


def _fitted(table: Table, width: int) -> list[str]:
    """The table in lines, without the last columns where there is no room for them."""
    lines = table_lines(table)
    if len(lines[0]) <= width or len(table.rows[0]) == 2:
        return lines
    return _fitted(Table(tuple(row[:-1] for row in table.rows)), width)
