"""The tour on the screen: each part a picture that moves by the seconds that have passed in it."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from dflash_tui.core.export.spans import token_spans
from dflash_tui.core.figures.labels import AS_FAST
from dflash_tui.core.lesson.tour import Part, Tour
from dflash_tui.core.race.clock import RaceClock
from dflash_tui.core.rounds.playback import PHASES

from ..glyphs import fitting, large_number
from ..options import options_of
from ..widgets.race_drawing import clock_lines
from ..widgets.rounds.large_round import LargeRound
from ..widgets.rounds.living_round import caption
from ..widgets.rounds.step_table import Scene
from ..widgets.token_log import TokenLog
from .once import LeavesOnce

FRAME = 1 / 15
LEAD, REST = 1.0, 4.0
"""Seconds of a part before anything moves in it, and at its end, when all of it is there."""
TOKENS_OF_BLOCK = 16
KEYS, AT_END = (("Space pause, or go on", "← → part", "Esc leave"), ("Space again", "← → part", "Esc leave"))


class TourScreen(LeavesOnce[None]):
    """Plays the tour and stands at its end. Any key pauses; Space goes on."""

    AUTO_FOCUS = ""
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (20, "-short"), (30, "-tall")]
    DEFAULT_CSS = """
    TourScreen { layout: vertical; background: $background; overflow: hidden; padding: 0 2; }
    #tour-head { height: 1; color: $verdict-pending; text-wrap: nowrap; text-overflow: ellipsis; }
    #tour-title { height: auto; margin: 1 0; text-style: bold; color: $primary; }
    #tour-stage { height: 1fr; }
    #tour-stage > * { display: none; height: 1fr; }
    #tour-picture { text-wrap: nowrap; text-overflow: clip; }
    #tour-words { height: auto; margin: 1 0; }
    #tour-keys { height: 1; dock: bottom; background: $panel; color: $verdict-pending; }
    TourScreen.-short #tour-title, TourScreen.-flat #tour-title { margin: 0; }
    TourScreen.-short #tour-words, TourScreen.-flat #tour-words { margin: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "pause, or go on"),
        Binding("right,pagedown,enter", "part(1)", "next part"),
        Binding("left,pageup", "part(-1)", "part before"),
        Binding("escape,q", "leave", "leave"),
    ]

    def __init__(self, tour: Tour) -> None:
        super().__init__()
        self.tour = tour
        self.parts = tour.parts
        self.place = 0
        self.seconds = 0.0
        """Seconds that have passed in this part."""
        self.playing = True
        self._seen = 0.0
        self._written = 0
        """How many rounds of the first answer are written."""

    def compose(self) -> ComposeResult:
        yield Static(id="tour-head")
        yield Static(id="tour-title")
        with Vertical(id="tour-stage"):
            yield TokenLog(id="tour-text", classes="shown")
            yield LargeRound(id="tour-round")
            yield Static(id="tour-picture")
        yield Static(id="tour-words")
        yield Static(id="tour-keys")

    def on_mount(self) -> None:
        self.query_one(TokenLog).can_focus = False  # the keys are the tour's
        self._seen = monotonic()
        self.playing = not options_of(self).reduced_motion
        self._open()
        self.set_interval(FRAME, self._frame)

    def on_resize(self) -> None:
        self.draw()

    @property
    def part(self) -> Part:
        return self.parts[self.place]

    @property
    def over(self) -> bool:
        return self.place == len(self.parts) - 1 and self.seconds >= self.part.seconds

    @property
    def share(self) -> float:
        """How much of this part's movement has been seen, in [0, 1]."""
        if not options_of(self).reduced_motion:
            return min(max((self.seconds - LEAD) / (self.part.seconds - LEAD - REST), 0.0), 1.0)
        return 1.0

    def _frame(self) -> None:
        now = monotonic()
        passed, self._seen = now - self._seen, now
        if self.playing and not self.over:
            self.advance(passed)

    def advance(self, seconds: float) -> None:
        """Move the tour on by ``seconds``."""
        self.seconds += seconds
        if self.seconds >= self.part.seconds and self.place < len(self.parts) - 1:
            self.place, self.seconds = self.place + 1, 0.0
            self._open()
        self.draw()

    def _open(self) -> None:
        """Show the widget of the part that begins now, with its title and words."""
        self._written = 0
        self.query_one(TokenLog).clear()
        shown = {"alone": "#tour-text", "round": "#tour-round"}.get(self.part.name, "#tour-picture")
        for widget in self.query("#tour-stage > *"):
            widget.display = f"#{widget.id}" == shown
        self.query_one("#tour-title", Static).update(Content(self.part.title))
        self.query_one("#tour-words", Static).update(Content(self.part.words))
        self.draw()

    def draw(self) -> None:
        before = sum(part.seconds for part in self.parts[: self.place])
        told = f"{self.place + 1} of {len(self.parts)}"
        told += "" if self.playing and not self.over else " · the end" if self.over else " · paused"
        room = max(self.size.width - len(told) - 6, 1)
        full = min(round((before + self.seconds) / self.tour.seconds * room), room)
        self.query_one("#tour-head", Static).update(
            Content.assemble(("━" * full, "$primary"), ("─" * (room - full), "$foreground 25%"), f"  {told}")
        )
        self.query_one("#tour-keys", Static).update(fitting(AT_END if self.over else KEYS, self.size.width - 4))
        pictures: dict[str, Callable[[], None]] = {"alone": self._draw_alone, "round": self._draw_round}
        pictures.get(self.part.name, self._draw_picture)()

    def _draw_alone(self) -> None:
        steps = self.tour.alone.steps
        due = round(self.share * len(steps))
        if due > self._written:
            self.query_one(TokenLog).append(list(token_spans(steps[self._written : due])))
            self._written = due

    def _draw_round(self) -> None:
        phase = PHASES[min(int(self.share * len(PHASES)), len(PHASES) - 1)]
        scene = Scene(self.tour.round, phase=phase)
        self.query_one(LargeRound).show(scene)
        self.query_one("#tour-words", Static).update(
            Content("\n").join([caption(scene), Content(self.part.words if self.share == 1 else "")])
        )

    def _draw_picture(self) -> None:
        lines = {"weights": self._weights, "race": self._race, "number": self._number}[self.part.name]()
        room = max((self.query_one("#tour-stage").size.height - len(lines)) // 2, 0)
        self.query_one("#tour-picture", Static).update(Content("\n").join([*[Content()] * room, *lines]))

    def _weights(self) -> list[Content]:
        """A bar of weights that is read from end to end, first for one token, then for sixteen."""
        cell = max((self.size.width - 4) // TOKENS_OF_BLOCK - 1, 1)
        width = TOKENS_OF_BLOCK * (cell + 1) - 1
        thick = max(self.query_one("#tour-stage").size.height // 12, 1)
        lines: list[Content] = []
        for tokens, begin, took in ((1, 0.0, self.tour.one_ms), (TOKENS_OF_BLOCK, 0.5, self.tour.block_ms)):
            share = min(max((self.share - begin) * 2, 0.0), 1.0)
            full = round(share * width)
            what = "one token" if tokens == 1 else "one token and fifteen guesses"
            box, look = ("▣", "bold $landed-bonus-text on $landed-bonus") if share == 1 else ("□", "on $foreground 15%")
            boxes = Content(" ").join([Content.styled(f"{box:^{cell}}", look)] * tokens)
            bar = Content.assemble(("█" * full, "$primary"), ("░" * (width - full), "$foreground 40%"))
            lines += [
                Content.assemble((f"a pass for {what}", "bold"), f"   {took:.1f} ms" if share == 1 else ""),
                *[bar] * thick,
                Content.styled("all the weights, read once", "$verdict-pending"),
                boxes,
                Content(),
            ]
        return lines

    def _race(self) -> list[Content]:
        clock = RaceClock(self.tour.race)
        clock.advance(self.share * clock.length)
        return clock_lines(clock, self.size.width - 4, self.query_one("#tour-stage").size.height)

    def _number(self) -> list[Content]:
        wide = 30  # cells of a factor at the smallest scale, about
        room = self.query_one("#tour-stage").size
        ascii = options_of(self).ascii
        scale = max(min(room.width // wide, room.height // 4, 4), 1)
        digits = large_number(f"{self.tour.factor:.1f}×", ascii, scale)
        return [*(Content.styled(row, "bold $verdict-bonus") for row in digits), Content(), Content(AS_FAST)]

    # Keys

    def action_play(self) -> None:
        if self.over:
            self.place, self.seconds = 0, 0.0
            self.playing = True
            self._open()
            return
        self.playing = not self.playing
        self.draw()

    def action_part(self, by: int) -> None:
        self.place = min(max(self.place + by, 0), len(self.parts) - 1)
        self.seconds = 0.0
        self._open()

    def on_key(self, event: events.Key) -> None:
        """Pause on any key that is bound to nothing."""
        if event.key not in ("space", "right", "left", "pagedown", "pageup", "enter", "escape", "q"):
            event.stop()
            self.playing = False
            self.draw()

    def action_leave(self) -> None:
        self.dismiss()
