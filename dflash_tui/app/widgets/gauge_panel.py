"""The panel: sliders, and the gauges in whatever room there is, in one row or a column, the important ones first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.widgets import Static

from dflash_tui.core.figures.tables import GaugeFacts
from dflash_tui.core.source import Feature
from engine.commands import MAX_TEMPERATURE, MIN_BLOCK_SIZE, BlockSize, GenerationSettings
from engine.rounds.statistics import MAX_DRAFT

from .gauges import NARROW_PITCH, Gauge, HistogramGauge, PassGauge, PositionGauge, RateGauge
from .meters import ContextGauge, CostGauge
from .slider import PACES, BlockSlider, PaceSlider, TemperatureSlider

OF_RECORDING = "pace of slow motion (F5); + and − change the recording's own"
NO_DRAFTER = "No drafter is loaded: there is no block to size."
GAP = 2
"""Cells between two gauges in one row."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How many rows a gauge needs, and up to how many help it."""

    least: int
    best: int


WISHES: Mapping[str, Wish] = {
    "rate": Wish(5, 10), "histogram": Wish(3, 12), "positions": Wish(3, 12), "cost": Wish(2, 2),
    "context": Wish(1, 1), "passes": Wish(3, 12),
}  # fmt: skip
"""The gauges by importance; on the screen they stand in the order of ``GaugePanel.compose``."""
CHARTS, CHART_WIDTH = {"histogram", "positions", "passes"}, (MAX_DRAFT + 1) * NARROW_PITCH
"""Gauges with a column for each number of guesses, and the cells that these take at least."""
FIRST_GROWTH = (("rate", 7), ("histogram", 4), ("positions", 4), ("passes", 4))
LATER_GROWTH = (
    ("histogram", 6), ("positions", 6), ("passes", 6), ("rate", 10), ("histogram", 12),
    ("positions", 12), ("passes", 12),
)  # fmt: skip
"""What rows left over go to, before and after blank rows between the gauges: which one, and up to which height."""


def heights(rows: int, wanted: Sequence[str]) -> dict[str, int]:
    """How many of ``rows`` each gauge gets, by name; ``wanted`` names them by importance. Gauges without room are
    missing, and one row is kept to say so."""
    shown: dict[str, int] = {}
    for name in wanted:
        rest = wanted[len(shown) + 1 :]
        if sum(shown.values()) + WISHES[name].least + (1 if rest else 0) > rows:
            break
        shown[name] = WISHES[name].least
    spare = rows - sum(shown.values()) - (1 if len(shown) < len(wanted) else 0)
    spare = _grow(shown, spare, FIRST_GROWTH)
    gaps = min(spare, max(len(shown) - 1, 0))
    _grow(shown, spare - gaps, LATER_GROWTH)
    return shown


def _grow(shown: dict[str, int], spare: int, growth: Iterable[tuple[str, int]]) -> int:
    """Give spare rows away; returns what is left."""
    for name, height in growth:
        if name in shown:
            more = min(max(height - shown[name], 0), max(spare, 0))
            shown[name] += more
            spare -= more
    return max(spare, 0)


def widths(cells: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """Cells for each gauge that finds room in one row, the first growing into what is left."""
    shown: dict[str, int] = {}
    for name, width in wanted.items():
        note = len(note_text(len(wanted) - len(shown) - 1)) + GAP if len(shown) + 1 < len(wanted) else 0
        if sum(shown.values()) + GAP * len(shown) + width + note > cells:
            break
        shown[name] = width
    if shown:
        first = next(iter(shown))
        missing = len(wanted) - len(shown)
        note = len(note_text(missing)) + GAP if missing else 0
        shown[first] += cells - sum(shown.values()) - GAP * (len(shown) - 1) - note
    return shown


def note_text(missing: int) -> str:
    """What stands for gauges without room."""
    return f"+{missing} /stats" if missing else ""


class GaugePanel(Container):
    """Arranges the gauges anew whenever its size changes. Those without room are counted, not dropped silently."""

    DEFAULT_CSS = """
    GaugePanel { layout: vertical; overflow: hidden; }
    GaugePanel > Gauge { display: none; }  /* until it has its place */
    GaugePanel > .missing { height: 1; width: auto; color: $verdict-pending; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.facts = GaugeFacts()

    def compose(self) -> ComposeResult:
        yield RateGauge(id="rate")
        yield HistogramGauge(id="histogram")
        yield PositionGauge(id="positions")
        yield PassGauge(id="passes")
        yield CostGauge(id="cost")
        yield ContextGauge(id="context")
        yield Static(classes="missing")

    def show(self, facts: GaugeFacts) -> None:
        known, self.facts = bool(self.facts.pass_ms), facts
        if known != bool(facts.pass_ms):
            self.share_room()
        for gauge in self.query(Gauge):
            gauge.show(facts)

    def on_resize(self, event: events.Resize) -> None:
        self.share_room()

    def share_room(self) -> None:
        """Give every gauge its place, by the panel's size and by what there is to show."""
        if not self.size.area:
            return
        in_a_row = self.size.height == 1
        lacking = CHARTS if not in_a_row and self.size.width < CHART_WIDTH else set()
        if in_a_row or not self.facts.pass_ms:
            lacking = lacking | {"passes"}
        wanted = [name for name in WISHES if name not in lacking]
        if in_a_row:
            compact = {name: self.query_one(f"#{name}", Gauge).compact_width for name in wanted}
            shown = widths(self.size.width, compact)
        else:
            shown = heights(self.size.height, wanted)
        self.styles.layout = "horizontal" if in_a_row else "vertical"
        gauges = list(self.query(Gauge))
        for gauge in gauges:
            gauge.display = gauge.id in shown
        visible = [gauge for gauge in gauges if gauge.display]
        self._tell_missing(len(wanted) - len(shown), in_a_row)
        (self._place_in_a_row if in_a_row else self._place_in_a_column)(visible, shown)

    def _tell_missing(self, missing: int, in_a_row: bool) -> None:
        note = self.query_one(".missing", Static)
        note.display = missing > 0
        note.update(note_text(missing) if in_a_row else f"{missing} more in /stats")

    def _place_in_a_row(self, gauges: list[Gauge], shown: Mapping[str, int]) -> None:
        for gauge in gauges:
            last = gauge is gauges[-1] and not self.query_one(".missing").display
            gauge.styles.width, gauge.styles.height = shown[gauge.id or ""], 1
            gauge.styles.margin = (0, 0 if last else GAP, 0, 0)

    def _place_in_a_column(self, gauges: list[Gauge], shown: Mapping[str, int]) -> None:
        """Place the gauges below each other; rows left over separate them."""
        spare = self.size.height - sum(shown.values()) - self.query_one(".missing").display
        for index, gauge in enumerate(gauges):
            gauge.styles.width, gauge.styles.height = "1fr", shown[gauge.id or ""]
            gauge.styles.margin = (0, 0, 1 if index < min(spare, len(gauges) - 1) else 0, 0)


TEMPERATURE_STEP = 0.05


class Panel(Container):
    """The gauges and the sliders."""

    def __init__(self, settings: GenerationSettings, *, id: str) -> None:
        super().__init__(id=id)
        self._settings = settings
        self._gauging: bool | None = None
        """Whether gauges are on show; before the first answer there are none. None before that was decided."""

    def compose(self) -> ComposeResult:
        settings = self._settings
        yield GaugePanel(id="gauges")
        with Container(id="sliders"):
            yield BlockSlider("block", settings.block_size, id="block")
            yield TemperatureSlider(
                "temp", 0, MAX_TEMPERATURE, TEMPERATURE_STEP, settings.temperature, id="temperature"
            )
            yield PaceSlider("pace", PACES[-1], id="pace")

    def on_mount(self) -> None:
        self._set_gauging(False)

    def show(self, facts: GaugeFacts) -> None:
        self._set_gauging(facts.turn.step is not None)
        self.query_one(GaugePanel).show(facts)

    def _set_gauging(self, gauging: bool) -> None:
        """Show the gauges, or the sliders alone. Without a style class: all parts would get their styles anew."""
        if gauging != self._gauging:
            self._gauging = gauging
            self.query_one(GaugePanel).visible = gauging
            self.styles.background = None if gauging else "transparent"
            for widget in self.query("*"):
                widget.notify_style_update()  # it stands on another ground
                widget.refresh()

    @property
    def size_chosen(self) -> BlockSize:
        return self.query_one(BlockSlider).size_chosen

    def show_pace(self, pace: float) -> None:
        """Show a pace that was changed by something else than its slider."""
        self.query_one(PaceSlider).value = pace

    def show_settings(self, settings: GenerationSettings, refused: Mapping[Feature, str]) -> None:
        """Show settings, which may have been changed by something else than a slider; not those that are
        ``refused``."""
        if "block_size" not in refused:
            self.query_one(BlockSlider).show(settings.block_size)
        if "temperature" not in refused:
            self.query_one(TemperatureSlider).value = settings.temperature

    def show_decided(self, settings: Mapping[str, Any], refused: Mapping[Feature, str]) -> None:
        """Let the sliders of ``refused`` settings, which were decided elsewhere, show what a turn was decoded with."""
        block, temperature = self.query_one(BlockSlider), self.query_one(TemperatureSlider)
        if "block_size" in refused:
            block.known = "block_size" in settings
            block.show(settings.get("block_size", block.size_chosen))
        if "temperature" in refused:
            temperature.known = "temperature" in settings
            temperature.value = settings.get("temperature", temperature.value)

    def offer(self, refused: Mapping[Feature, str], *, recorded: bool) -> None:
        """Make the sliders of settings that the source can't change grey, with the reason; a recording knows their
        values."""
        for slider, reason in (
            (self.query_one(BlockSlider), refused.get("block_size")),
            (self.query_one(TemperatureSlider), refused.get("temperature")),
        ):
            slider.offer(reason)
            slider.known = reason is None or recorded
        if recorded:
            pace = self.query_one(PaceSlider)
            pace.hint = pace.tooltip = OF_RECORDING
            pace.fastest = "replay's"

    def limit_block(self, most: int) -> None:
        """Offer blocks of at most ``most`` tokens; turn the slider off where that is too few, for want of a drafter."""
        slider = self.query_one(BlockSlider)
        if most < MIN_BLOCK_SIZE:
            slider.offer(NO_DRAFTER)
        else:
            slider.limit(most)
