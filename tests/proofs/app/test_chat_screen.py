"""The chat as a user meets it: keys in, screen out, on the scripted engine."""

from __future__ import annotations

from dflash_tui.app.widgets.gauges import Gauge
from dflash_tui.app.widgets.status import Header, StatusLine
from support.scripted_engine import PAGE
from tests.app.conftest import Launch

LONG = PAGE * 400
"""Does not end while a test runs: it takes a minute."""
SIZES = [(120, 36), (100, 30), (80, 24), (60, 18), (40, 24), (30, 8)]


async def test_the_view_lets_go_and_follows_again(launch: Launch) -> None:
    async with launch(answer=LONG, round_seconds=0.005) as chat:
        await chat.ask()
        await chat.until(lambda: chat.log.max_scroll_y > 40)
        await chat.pilot.press("pageup")
        await chat.until(lambda: not chat.log.following)
        held = chat.log.scroll_offset.y
        rows = len(chat.log.rows)
        await chat.until(lambda: len(chat.log.rows) > rows + 5)
        assert not chat.log.following and chat.log.scroll_offset.y == held
        assert "new" in "".join(segment.text for segment in chat.log.render_line(chat.log.size.height - 1))
        await chat.pilot.press("end")
        rows = len(chat.log.rows)
        await chat.until(lambda: len(chat.log.rows) > rows + 5)
        assert chat.log.following and chat.log.scroll_offset.y == chat.log.max_scroll_y


async def test_every_size_shows_transcript_prompt_and_whole_words(launch: Launch) -> None:
    async with launch() as chat:
        header, status = chat.screen.query_one(Header), chat.screen.query_one(StatusLine)
        ready = chat.screen.chat.reducer.ready
        assert ready is not None
        for width, height in SIZES:
            await chat.pilot.resize_terminal(width, height)
            if width >= 40:
                await chat.until(lambda: header.render().plain.endswith((ready.dtype, ready.device, " ")))
                assert "F1 help" in status.render().plain
        await chat.ask_and_wait()
        for width, height in SIZES:
            await chat.pilot.resize_terminal(width, height)
            await chat.until(lambda height=height: status.region.bottom == height)
            assert chat.log.size.height >= 3 and chat.log.size.width >= width // 2
            assert chat.prompt.region.bottom < height
            shown = [gauge for gauge in chat.screen.query(Gauge) if gauge.display and gauge.region]
            assert bool(shown) == (width >= 60 and height >= 18)
            assert all(gauge.region.right <= width for gauge in shown)
            if width >= 40:
                await chat.until(lambda: "F3 " in status.render().plain)
                keys = status.render().plain
                assert "F5 slow" in keys and "Esc" not in keys, "two have room everywhere"
                assert ("F8 project · ^S save · F1 help" in keys) == (width >= 80)
                assert ("F3 look inside · F5 slow motion" in keys) == (width >= 120)


async def test_a_notice_goes_when_the_user_goes_on_and_lies_over_nothing_to_be_read(launch: Launch) -> None:
    async with launch(answer="ok", notices=True) as chat:
        await chat.ask_and_wait("one")
        for goes_on, opens in (("escape", False), ("two", False), ("f1", True), ("/stats", True)):
            await chat.ask("/retry")
            await chat.until(lambda: not chat.screen.chat.busy)
            assert chat.screen.query("Toast")
            await (chat.pilot.press(goes_on) if goes_on in ("escape", "f1") else chat.ask(goes_on))
            await chat.pilot.pause()
            assert not chat.app.screen.query("Toast") and (chat.app.screen is not chat.screen) == opens
            await chat.until(lambda: not chat.screen.chat.busy)
            if opens:
                await chat.pilot.press("escape")
        await chat.ask("/retry")
        chat.app.simulate_key("ctrl+o")
        await chat.until(lambda: chat.app.screen is not chat.screen and bool(chat.app.screen.query("Toast")))
        await chat.until(lambda: not chat.screen.query("Toast"))
        await chat.pilot.press("escape")
        await chat.until(lambda: chat.app.screen is chat.screen and len(chat.screen.query("Toast")) == 1)
