"""The gauges: who gets which room, what they draw, and the tables behind them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import Static

from dflash_tui.app.screens.statistics import StatisticsScreen
from dflash_tui.app.widgets.gauge_panel import WISHES, GaugePanel
from dflash_tui.app.widgets.gauges import Gauge, HistogramGauge, PositionGauge, RateGauge
from dflash_tui.app.widgets.meters import CostGauge
from dflash_tui.core.figures.labels import TOKENS_PER_ROUND
from tests.app.conftest import Driver, Launch
from tests.app.test_gauges import texts

SIZES = [(200, 60), (150, 40), (120, 36), (100, 32), (100, 24), (80, 24), (60, 18)]


@pytest.mark.parametrize("size", SIZES)
async def test_gauges_fit_at_every_size(chat: Driver, size: tuple[int, int]) -> None:
    await chat.pilot.resize_terminal(*size)
    chat.screen.draw_gauges()
    await chat.until(lambda: chat.screen.query_one(RateGauge).facts.turn.finished)
    gauges = chat.screen.query_one(GaugePanel)
    gauges.show(replace(gauges.facts, pass_ms=(0.9, 1.0, 0.0, 1234.5), rows=16))
    await chat.pilot.pause()
    shown = [gauge for gauge in chat.screen.query(Gauge) if gauge.display and gauge.region]
    note = chat.screen.query_one("#gauges > .missing", Static)
    in_a_row = gauges.size.height == 1  # what a check costs by its rows is no line
    assert len(shown) == len(WISHES) - in_a_row or note.display
    for gauge in shown:
        rows = gauge.render().plain.splitlines()
        assert len(rows) <= gauge.size.height
        assert max(map(len, rows)) <= gauge.size.width, (gauge.id, rows)
    pitches = {chart.pitch for chart in map(chat.screen.query_one, (HistogramGauge, PositionGauge)) if chart in shown}
    assert len(pitches) < 2, "a bar of one stands as far from its neighbour as in the other"
    if size == (120, 36):
        everything = texts(chat)
        for words in ("tokens/s", "a round", "first", "kept a round", "by place", "guess 3.1", "context"):
            assert words in everything
        assert not {"τ", "±", "n="} & {part for part in ("τ", "±", "n=") if part in everything}
        assert len(pitches) == 1


async def test_a_table_stands_behind_every_gauge(launch: Launch) -> None:
    async with launch(size=(120, 40)) as chat:
        await chat.ask("/stats")
        assert "no numbers" in chat.notices()
        chat.prompt.clear()
        await chat.ask_and_wait()
        for gauge in [gauge for gauge in chat.screen.query(Gauge) if gauge.display]:
            gauge.focus()
            await chat.pilot.press("enter")
            await chat.until(lambda: isinstance(chat.app.screen, StatisticsScreen))
            assert chat.app.screen.query(f"#{gauge.section}"), gauge.section
            await chat.pilot.press("escape")
            await chat.until(lambda: chat.app.screen is chat.screen)
        for clicked in (CostGauge, HistogramGauge):
            await chat.pilot.click(clicked)
            await chat.until(lambda: isinstance(chat.app.screen, StatisticsScreen))
            await chat.pilot.press("escape")
            await chat.until(lambda: chat.app.screen is chat.screen)
        chat.prompt.focus()
        await chat.ask("/stats")
        await chat.until(lambda: isinstance(chat.app.screen, StatisticsScreen))
        words = "\n".join(str(table.render()) for table in chat.app.screen.query(Static))
        assert TOKENS_PER_ROUND.name in words and "rounds that got there" in words
        assert "num_" not in words
