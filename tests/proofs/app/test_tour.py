"""The tour on the screen: it plays itself to its end, a key stops it, and all of it is from the recording."""

from __future__ import annotations

from textual.pilot import Pilot

from dflash_tui.app.glyphs import large_number
from dflash_tui.app.screens.tour import TourScreen
from dflash_tui.app.tour import TourApp
from dflash_tui.core.lesson.tour import open_tour
from dflash_tui.core.settings.config import ScreenOptions

SIZES = ((200, 60), (120, 36), (80, 24), (60, 18))


def drawn(app: TourApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def to(pilot: Pilot[None], screen: TourScreen, name: str) -> None:
    """The end of a part, with everything in it."""
    screen.place = [part.name for part in screen.parts].index(name)
    screen.seconds = 0.0
    screen._open()
    screen.advance(screen.part.seconds - 0.1)
    await pilot.pause()


async def test_every_part_shows_its_figures_at_every_size() -> None:
    tour = open_tour()
    app = TourApp(tour)
    async with app.run_test(size=SIZES[0]) as pilot:
        screen = app.tour_screen
        screen.playing = False
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await to(pilot, screen, "alone")
            assert "quicksort" in drawn(app)
            await to(pilot, screen, "weights")
            assert f"{tour.one_ms:.1f} ms" in drawn(app) and drawn(app).count("▣") == 17
            await to(pilot, screen, "round")
            assert f"{len(tour.round.step.emitted)} tokens" in " ".join(drawn(app).split())
            await to(pilot, screen, "race")
            assert f"{tour.drafted.decode_seconds:.2f} s" in drawn(app) and "█" in drawn(app)
            await to(pilot, screen, "number")
            row = large_number(f"{tour.factor:.1f}×")[0] if size[1] < 24 else "█"
            assert row.strip() in drawn(app)
        screen.advance(screen.part.seconds)
        assert screen.over


async def test_a_key_pauses_and_space_goes_on() -> None:
    app = TourApp(open_tour())
    async with app.run_test() as pilot:
        screen = app.tour_screen
        await pilot.pause(0.2)
        assert screen.playing and screen.seconds > 0
        await pilot.press("x")
        stood = screen.seconds
        await pilot.pause(0.2)
        assert not screen.playing and screen.seconds == stood
        await pilot.press("space")
        await pilot.pause(0.2)
        assert screen.playing and screen.seconds > stood
        await pilot.press("right")
        assert screen.place == 1
        await pilot.press("escape")


async def test_it_stands_for_who_wants_no_motion() -> None:
    app = TourApp(open_tour(), screen_options=ScreenOptions(reduced_motion=True))
    async with app.run_test() as pilot:
        await pilot.pause(0.2)
        assert app.tour_screen.seconds == 0 and "quicksort" in drawn(app), "each part is there as a whole"
        await pilot.press("right")
        assert "▣" in drawn(app)


def test_it_lasts_two_minutes() -> None:
    assert open_tour().seconds == 120
