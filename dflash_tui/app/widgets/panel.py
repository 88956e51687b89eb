"""The panel: gauges, and below them the sliders."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container

from engine.commands import MAX_TEMPERATURE, GenerationSettings

from .gauge_panel import GaugePanel
from .slider import PACES, BlockSlider, PaceSlider, TemperatureSlider

TEMPERATURE_STEP = 0.05


class Panel(Container):
    """Where the answer is measured and steered."""

    def __init__(self, settings: GenerationSettings, *, id: str) -> None:
        super().__init__(id=id)
        self._settings = settings

    def compose(self) -> ComposeResult:
        settings = self._settings
        yield GaugePanel(id="gauges")
        with Container(id="sliders"):
            yield BlockSlider("block", settings.block_size, id="block")
            yield TemperatureSlider(
                "temp", 0, MAX_TEMPERATURE, TEMPERATURE_STEP, settings.temperature, id="temperature"
            )
            yield PaceSlider("pace", PACES[-1], id="pace")
