"""A one-line slider for the keyboard and the mouse."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from dflash_tui.core.figures.statistics import NOT_KNOWN
from engine.commands import AUTO, MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, BlockSize

TYPING_SECONDS = 1.2
"""Seconds from one digit to the next within which both belong to one number."""
LABEL_WIDTH, VALUE_WIDTH = 6, 10
PACES = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Stops of the pace slider, as shares of the engine's speed; typing reaches the values between."""


class Track(Widget):
    """A row with a track that the mouse can drag on. Subclasses say where it lies, and what a place on it means."""

    @property
    def track(self) -> tuple[int, int]:
        """The track's first column and the one behind its last."""
        raise NotImplementedError

    def dragged(self, share: float) -> None:
        """Called while the mouse drags the knob: ``share`` is from 0 on the left to 1 on the right."""
        raise NotImplementedError

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self.capture_mouse()
        self._drag(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.app.mouse_captured is self:
            self._drag(event)

    def on_mouse_up(self) -> None:
        self.release_mouse()

    def _drag(self, event: events.MouseEvent) -> None:
        left, right = self.track
        self.dragged(min(max((event.x - left) / max(right - left - 1, 1), 0.0), 1.0))


class Slider(Track, can_focus=True):
    """Arrows move by a step, Page keys by five, Home and End to the ends; digits type, the mouse drags. ``Changed`` is
    posted when the user moved it, not when ``value`` is set."""

    DEFAULT_CSS = """
    Slider {
        height: 1;
        width: 1fr;
        color: $text-muted;
        &:focus { color: $foreground; background: $panel; }
        &:disabled:can-focus { opacity: 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,down", "move(-1)", "Less", show=False),
        Binding("right,up", "move(1)", "More", show=False),
        Binding("pagedown", "move(-5)", "Much less", show=False),
        Binding("pageup", "move(5)", "Much more", show=False),
        Binding("home", "jump('low')", "Least", show=False),
        Binding("end", "jump('high')", "Most", show=False),
    ]

    value: reactive[float] = reactive(0.0)
    known: reactive[bool] = reactive(True)
    """Whether the value is known; where the source of the answers sets it and doesn't tell, none is shown."""
    hint: str = ""
    """What it sets and when that acts, for the status line while it has the focus."""

    @dataclass
    class Changed(Message):
        """The user moved a slider."""

        slider: Slider
        value: float

        @property
        def control(self) -> Slider:
            return self.slider

    def __init__(self, label: str, low: float, high: float, step: float, value: float, *, id: str) -> None:
        super().__init__(id=id)
        self.label, self.low, self.high, self.step = label, low, high, step
        self.set_reactive(Slider.value, value)
        self.tooltip = self.hint
        self._typed = ""
        self._typed_at = 0.0

    def validate_value(self, value: float) -> float:
        steps = round((min(max(value, self.low), self.high) - self.low) / self.step)
        return round(self.low + steps * self.step, 6)

    def offer(self, refused: str | None) -> None:
        """Let the user move the slider when ``refused`` is None; else turn it off and give that reason in its
        tooltip."""
        self.disabled = refused is not None
        self.tooltip = refused or self.hint

    def describe(self) -> str:
        """The value in words; subclasses say more."""
        return f"{self.value:g}"

    def render(self) -> Content:
        left, right = self.track
        length = max(right - left, 1)
        if not self.known:
            line = ("─" * length, "$foreground 22%")
            return Content.assemble(f"{self.label:<{LABEL_WIDTH}}├", line, f"┤ {NOT_KNOWN}")
        knob = round(self.share * (length - 1))
        moved = "$primary" if not self.disabled else "$foreground 40%"  # its words stay readable
        return Content.assemble(
            f"{self.label:<{LABEL_WIDTH}}├",
            ("━" * knob, moved),
            ("●", f"bold {moved}" if not self.has_focus else f"bold reverse {moved}"),
            ("─" * (length - 1 - knob), "$foreground 22%"),
            f"┤ {self.describe()}",
        )

    @property
    def share(self) -> float:
        """Where the knob is, from 0 on the left to 1 on the right."""
        return (self.value - self.low) / (self.high - self.low)

    def value_at(self, share: float) -> float:
        """The value whose knob is there."""
        return self.low + share * (self.high - self.low)

    def moved(self, steps: int) -> float:
        """The value so many steps further, which may be out of range."""
        return self.value + steps * self.step

    @property
    def track(self) -> tuple[int, int]:
        return LABEL_WIDTH + 1, max(self.size.width - VALUE_WIDTH - 2, LABEL_WIDTH + 2)

    def _choose(self, value: float) -> None:
        before = self.value
        self.value = value
        if self.value != before:
            self.post_message(self.Changed(self, self.value))

    def action_move(self, steps: int) -> None:
        self._choose(self.moved(steps))

    def action_jump(self, end: str) -> None:
        self._choose(self.low if end == "low" else self.high)

    @staticmethod
    def types(character: str | None) -> bool:
        """Whether this character is part of a value."""
        return character is not None and character in "0123456789."

    def typed(self, text: str) -> float | None:
        """The value that was typed, if it is one: "1" on the way to "16" is none of a slider that begins at 2."""
        try:
            value = float(text)
        except ValueError:
            return None
        return value if self.low <= value <= self.high else None

    def on_key(self, event: events.Key) -> None:
        if event.character is None or not self.types(event.character):
            return
        event.stop()
        now = monotonic()
        self._typed = event.character if now - self._typed_at > TYPING_SECONDS else self._typed + event.character
        self._typed_at = now
        typed = self.typed(self._typed)
        if typed is not None:
            self._choose(typed)

    def dragged(self, share: float) -> None:
        self._choose(self.value_at(share))


class BlockSlider(Slider):
    """Tokens per round: a block of 16 drafts 15 and adds one. The stop behind the largest block is ``auto``."""

    hint = "block size: from the next round on · ← →, or type it; End: auto"

    def __init__(self, label: str, size: BlockSize, *, id: str) -> None:
        super().__init__(label, MIN_BLOCK_SIZE, MAX_BLOCK_SIZE + 1, 1, MAX_BLOCK_SIZE + 1, id=id)
        self.set_reactive(Slider.value, self._stop_of(size))

    @property
    def sizes(self) -> range:
        return range(MIN_BLOCK_SIZE, int(self.high))

    @property
    def size_chosen(self) -> BlockSize:
        return AUTO if self.value == self.high else int(self.value)

    def show(self, size: BlockSize) -> None:
        """Put the knob at ``size`` without posting a message."""
        self.value = self._stop_of(size)

    def limit(self, most: int) -> None:
        """Offer blocks of at most ``most`` tokens; a larger one that was chosen becomes that."""
        size = self.size_chosen
        self.high = most + 1
        self.show(size if size == AUTO else min(size, most))
        self.refresh()

    def _stop_of(self, size: BlockSize) -> float:
        return self.high if size == AUTO else min(size, self.high - 1)

    def describe(self) -> str:
        size = self.size_chosen
        return AUTO if size == AUTO else f"{size} ({size - 1}+1)"

    def typed(self, text: str) -> float | None:
        size = super().typed(text)
        return size if size != self.high else None  # no size: it stands for auto


class TemperatureSlider(Slider):
    """Sets the sampling temperature; 0 always takes the likeliest token."""

    hint = "temperature, 0 is greedy: from the next round on · ← →, or type it"

    def describe(self) -> str:
        return "0 greedy" if self.value == 0 else f"{self.value:.2f}"


class PaceSlider(Slider):
    """Sets the view's speed as a share of the engine's. Its stops are not evenly spaced, its values are exact."""

    hint = "pace of the view: at once; the engine runs on · ← →, or type it"
    fastest = "full"
    """What the pace is called that the view can't be faster than."""

    def __init__(self, label: str, value: float, *, id: str) -> None:
        super().__init__(label, PACES[0], PACES[-1], 0.01, value, id=id)

    def describe(self) -> str:
        return self.fastest if self.value == PACES[-1] else f"{self.value:.2g}×"

    @property
    def share(self) -> float:
        below = max(index for index, pace in enumerate(PACES) if pace <= self.value)
        if below == len(PACES) - 1:
            return 1.0
        fraction = (self.value - PACES[below]) / (PACES[below + 1] - PACES[below])
        return (below + fraction) / (len(PACES) - 1)

    def value_at(self, share: float) -> float:
        return PACES[round(share * (len(PACES) - 1))]

    def moved(self, steps: int) -> float:
        index = round(self.share * (len(PACES) - 1)) + steps
        return PACES[min(max(index, 0), len(PACES) - 1)]
