"""The gauges: who gets which room, what they draw, and the tables behind them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.app.glyphs import large_number
from dflash_tui.app.screens.help import HelpScreen
from dflash_tui.app.screens.statistics import drawn
from dflash_tui.app.widgets.gauge_panel import GAP, WISHES, GaugePanel, heights, note_text, widths
from dflash_tui.app.widgets.gauges import Gauge, HistogramGauge, PassGauge, PositionGauge, RateGauge
from dflash_tui.app.widgets.status import StatusLine
from dflash_tui.core.figures.pass_costs import pass_costs, pass_table

from .conftest import Driver, Launch

NAMES = tuple(WISHES)


@given(st.integers(1, 80), st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
def test_rows_are_never_promised_twice(rows: int, chosen: list[str]) -> None:
    wanted = [name for name in NAMES if name in chosen]
    shown = heights(rows, wanted)
    assert list(shown) == wanted[: len(shown)], "the important ones come first"
    assert all(WISHES[name].least <= shown[name] <= WISHES[name].best for name in shown)
    told = 1 if len(shown) < len(wanted) else 0
    assert sum(shown.values()) + told <= rows or not shown
    if told:
        missing = wanted[len(shown)]
        rest = 1 if len(shown) + 1 < len(wanted) else 0
        fewest = sum(WISHES[name].least for name in shown)
        assert fewest + WISHES[missing].least + rest > rows, "what is left out has no room"


@given(st.integers(1, 250), st.dictionaries(st.sampled_from(NAMES), st.integers(8, 30), min_size=1))
def test_a_row_is_filled_to_its_end(cells: int, wanted: dict[str, int]) -> None:
    shown = widths(cells, wanted)
    missing = len(wanted) - len(shown)
    note = len(note_text(missing)) + GAP if missing else 0
    if shown:
        assert sum(shown.values()) + GAP * (len(shown) - 1) + note == cells
        assert all(shown[name] >= wanted[name] for name in shown)


def texts(chat: Driver) -> str:
    """Everything that the visible gauges draw."""
    shown = [gauge for gauge in chat.screen.query(Gauge) if gauge.display and gauge.region]
    return "\n".join(gauge.render().plain for gauge in shown)


@pytest.mark.parametrize("speed", [10.0, 1000.0, 25_000.0])
async def test_no_speed_is_cut(launch: Launch, speed: float) -> None:
    async with launch(speed=speed) as chat:
        await chat.ask_and_wait()
        chat.screen.draw_gauges()
        gauge = chat.screen.query_one(RateGauge)
        digits = large_number(f"{speed:,.0f}".replace(",", " "))
        assert "".join(digits[0].split()) in "".join(gauge.render().plain.split())
        assert max(map(len, gauge.render().plain.splitlines())) <= gauge.size.width


async def test_the_speed_up_shows_only_once_it_was_measured(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_tui.core.rounds.factor.LEAST_ROUNDS", 1)  # the scripted answer has a few
    async with launch() as chat:
        await chat.ask_and_wait()
        await chat.until(lambda: texts(chat).startswith("tokens/s"))
        await chat.ask("/speculation off")
        await chat.ask_and_wait()
        await chat.until(lambda: "no speculation" in texts(chat))
        await chat.ask("/speculation on")
        await chat.ask_and_wait()
        found = chat.screen.chat.reducer.turn.snapshot.speed_up
        assert found is not None and found.about, "it was measured in another answer"
        await chat.until(lambda: "(about)" in texts(chat).partition("\n")[0])
        assert large_number(f"{found.times:.1f}×")[0] in texts(chat)
        assert texts(chat).count("tokens/s") == 1, "a figure stands once"


async def test_a_click_on_a_bar_picks_it(chat: Driver) -> None:
    gauge = chat.screen.query_one(HistogramGauge)
    assert gauge.column_at(0) == 0 and gauge.column_at(gauge.columns * gauge.pitch) is None
    await chat.pilot.click(gauge, offset=(0, gauge.size.height - 2))
    await chat.until(lambda: chat.screen.viewer.position is not None)
    history = chat.screen.chat.reducer.turn.rounds
    assert history.accepted[chat.screen.viewer.position.step] == 0


async def test_what_a_check_costs_is_drawn_by_rows_with_what_this_round_takes(launch: Launch) -> None:
    async with launch(size=(120, 40)) as chat:
        await chat.ask_and_wait()
        gauges, gauge = chat.screen.query_one(GaugePanel), chat.screen.query_one(PassGauge)
        assert not gauge.display, "nobody timed passes"
        gauges.show(replace(gauges.facts, pass_ms=(10.0, 11.0, 0.0, 20.0), rows=3))
        await chat.until(lambda: gauge.size.height >= gauge.least)
        title, *rows, below = gauge.render().plain.splitlines()
        assert title.rstrip() == "check by rows 1: 10, 3: 15.5 ms", "halfway from two rows to four"
        assert [gauge.column_at(at) for at, glyph in enumerate(rows[-1]) if glyph != " "] == [0, 1, 2, 3]
        assert gauge.column_at(below.index("▲")) == 2
        gauges.show(replace(gauges.facts, pass_ms=(900.0, 1234.5)))
        assert gauge.render().plain.startswith("check by rows 1: 0.9, 2: 1.23 s")


async def test_a_gauge_is_drawn_again_only_when_its_part_changed(chat: Driver) -> None:
    gauge = chat.screen.query_one(PositionGauge)
    drawn: list[bool] = []
    gauge.refresh = lambda *regions, **options: drawn.append(True) or gauge  # type: ignore[assignment]
    chat.screen.draw_gauges()
    assert drawn == []


@pytest.mark.parametrize("width", [33, 53, 77])
def test_bars_are_drawn_where_there_is_room_for_them(width: int) -> None:
    text = drawn(pass_table(pass_costs([(16, 20_000)], (1.0, 1.5)), 16, drawn=True), width).plain
    table, _, _ = text.partition("A row for")
    assert max(map(len, table.splitlines())) <= max(width, 44) and ("█" in table) is (width > 70)


async def test_a_mouse_alone_opens_and_closes_what_keys_do(chat: Driver) -> None:
    line = chat.screen.query_one(StatusLine)
    await chat.pilot.click(line, offset=(line.render().plain.index("F1") + 1, 0))
    await chat.until(lambda: isinstance(chat.app.screen, HelpScreen))
    await chat.pilot.click(offset=(1, 5))
    await chat.until(lambda: chat.app.screen is chat.screen)
