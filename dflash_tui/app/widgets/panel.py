"""The panel: gauges, and below them the sliders."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container

from engine.commands import MAX_BLOCK_SIZE, MAX_TEMPERATURE, MIN_BLOCK_SIZE, GenerationSettings

from .gauge_panel import GaugePanel
from .slider import PACES, BlockSlider, PaceSlider, TemperatureSlider

TEMPERATURE_STEP = 0.05


class Panel(Container):
    """Where the answer is measured and steered."""

    def __init__(self, settings: GenerationSettings, *, id: str) -> None:
        super().__init__(id=id)
        self._settings = settings

    def compose(self) -> ComposeResult:
        block, temperature = self._settings.block_size, self._settings.temperature
        yield GaugePanel(id="gauges")
        with Container(id="sliders"):
            slider = BlockSlider("block", MIN_BLOCK_SIZE, MAX_BLOCK_SIZE, 1, block, id="block")
            slider.auto = self._settings.verify == "auto"
            yield slider
            yield TemperatureSlider("temp", 0, MAX_TEMPERATURE, TEMPERATURE_STEP, temperature, id="temperature")
            yield PaceSlider("pace", PACES[-1], id="pace")
