"""The chat attached to a server: it tells what it accepted, and knows no drafts, no odds and no parts of a round."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from dflash_tui.app.widgets.meters import CostGauge
from dflash_tui.app.widgets.rounds.round_strip import RoundStrip
from dflash_tui.app.widgets.rounds.step_table import WIDE_LABEL, StepTable
from dflash_tui.app.widgets.slider import BlockSlider, TemperatureSlider
from dflash_tui.core.figures.labels import DRAFTER_SURE, GUESS, SURE_OF_OWN, TARGET_SURE
from dflash_tui.core.text.spans import Span
from engine.commands import Ask
from tests.app.conftest import Driver, running
from tests.scripted_server import (
    ADVICE,
    BLOCK,
    FIXED,
    SECRET,
    ScriptedServer,
)


@pytest.fixture
def server(tmp_path: Path) -> Callable:
    return partial(running, tmp_path / "out", notices=True, engine=ScriptedServer)


async def test_what_it_can_not_set_is_grey_and_says_why(server: Callable) -> None:
    async with server() as driver:
        block, temperature = driver.screen.query_one(BlockSlider), driver.screen.query_one(TemperatureSlider)
        assert block.disabled and block.tooltip == BLOCK and "not known" in str(block.render())
        assert not temperature.disabled and "not known" not in str(temperature.render())
        for typed, reason in (("/block 8", BLOCK), ("/seed 7", FIXED), ("/speculation off", FIXED), ("/race", FIXED)):
            driver.app.clear_notifications()
            await driver.ask(typed)
            await driver.until(lambda reason=reason: reason in driver.notices())
            driver.prompt.text = ""
        driver.app.clear_notifications()
        await driver.pilot.press("alt+up")
        await driver.until(lambda: BLOCK in driver.notices())
        await driver.ask("/temp 0.5")
        assert temperature.value == 0.5
        await driver.ask_and_wait("hello")
        assert driver.sent(Ask)[-1].settings.temperature == 0.5


async def test_what_it_does_not_tell_is_said_to_be_unknown(server: Callable) -> None:
    async with server() as driver:
        await driver.ask_and_wait("hello")
        assert driver.screen.chat.reducer.turn.snapshot.acceptance.num_spec_steps > 5
        strip = str(driver.screen.query_one(RoundStrip).render())
        assert "kept" in strip and "draft " not in strip and "moon" not in strip, "the script drafts a moon, in vain"
        assert "by arrival, parts not known" in str(driver.screen.query_one(CostGauge).lines(2)[0])
        await driver.ask("/steps 2")
        await driver.pilot.pause()
        table = str(driver.screen.query_one(StepTable).render())
        rows = {line[:WIDE_LABEL].strip(): line[WIDE_LABEL:].strip() for line in table.splitlines()}
        assert {rows[label.name] for label in (DRAFTER_SURE, TARGET_SURE, SURE_OF_OWN)} == {"not known"}
        assert "░" in rows[GUESS.name] and "guess and check not known" in table
        await driver.pilot.press("escape")
        driver.app.clear_notifications()
        await driver.ask("/lens")
        assert driver.screen.viewer.lenses.lens == "plain", "the lens that would show nothing is passed over"
        await driver.ask("/lens confidence")
        await driver.until(lambda: SECRET in driver.notices())


def looks(driver: Driver) -> list[Span]:
    """The answer as the transcript has it."""
    document = driver.log._document
    return [span for span in document._all.spans(str(document._everything)) if span.token is not None]


async def test_rounds_that_are_not_told_are_text_and_the_servers_totals(server: Callable, tmp_path: Path) -> None:
    async with server(told=False, notice=True) as driver:
        await driver.ask_and_wait("hello")
        await driver.ask_and_wait("again")
        assert {span.style for span in looks(driver)} == {"unknown"}
        assert driver.log.text.count(ADVICE.advice) == 1, "what could be told is told once"
        totals = driver.screen.chat.reducer.turn.snapshot.totals
        assert totals is not None and totals.num_draft_tokens > 0
        path = driver.screen.queue.log.path
        shown = looks(driver)
        await driver.ask("/new")
        driver.screen.desk.resume(path)
        await driver.pilot.pause()
        assert [(span.text, span.style) for span in looks(driver)] == [(span.text, span.style) for span in shown]
        await driver.ask(f"/export html {tmp_path / 'page.html'}")
        await driver.pilot.pause()
    assert "Bearer" not in path.read_text()
