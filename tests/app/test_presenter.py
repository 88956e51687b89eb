"""The presenter's screen: the round alone, at every size, and the game of guessing."""

from __future__ import annotations

import pytest
from textual.widgets import Static

from dflash_tui.app.chat.presenter import PresenterScreen
from dflash_tui.app.widgets.rounds.large_round import LargeRound
from dflash_tui.core.rounds.cells import draft_text, show_blanks
from dflash_tui.core.rounds.playback import PHASES
from dflash_tui.core.settings.config import ScreenOptions

from .conftest import Driver, Launch

STILL = ScreenOptions(reduced_motion=True)


def presenter(chat: Driver) -> PresenterScreen:
    assert isinstance(chat.app.screen, PresenterScreen)
    return chat.app.screen


def drawn(chat: Driver) -> str:
    return "\n".join(strip.text for strip in chat.app.screen._compositor.render_strips())


def said(chat: Driver) -> str:
    screen = presenter(chat)
    screen.show()
    return " ".join(str(screen.query_one(f"#present-{part}", Static).render()) for part in ("title", "words"))


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (60, 18)])
async def test_a_round_is_seen_phase_by_phase(launch: Launch, size: tuple[int, int]) -> None:
    async with launch(size=size, screen_options=STILL) as chat:
        await chat.ask_and_wait()
        await chat.pilot.press("f8")
        screen = presenter(chat)
        for phase in PHASES:
            scene = screen.query_one(LargeRound).scene
            assert scene is not None and scene.phase == phase
            await chat.pilot.pause()
            for draft in scene.inspection.step.draft:
                assert (show_blanks(draft_text(draft))[:6] in drawn(chat)) == scene.reached("draft")
            assert ("kept" in said(chat)) == scene.reached("judge") or "kept up to" in said(chat)
            await chat.pilot.press("right_square_bracket")
        assert chat.screen.viewer.place is not None
        round_before = chat.screen.viewer.place.step
        await chat.pilot.press("full_stop")
        assert chat.screen.viewer.place.step == round_before + 1
        await chat.pilot.press("escape")
        await chat.until(lambda: chat.app.screen is chat.screen)
        assert not chat.screen.viewer.open and not chat.screen.viewer.motion.teaching


async def test_the_game_says_that_it_is_on_and_keeps_the_score(launch: Launch) -> None:
    async with launch(screen_options=STILL, notices=True) as chat:
        await chat.ask_and_wait()
        await chat.pilot.press("f8", "p", "right_square_bracket")
        step = chat.screen.viewer.step
        assert step is not None and len(step.draft) == 15
        assert "How many of the 15" in said(chat) and "guessing is on" in said(chat)
        assert chat.screen.viewer.snapshot is not None and chat.screen.viewer.snapshot.step == step.index - 1
        await chat.pilot.press("9", "9", "enter")
        assert "from 0 to 15" in chat.notices()
        await chat.pilot.press(*str(step.num_accepted), "enter")
        assert "right" in said(chat) and "guessing 1/1" in said(chat) and "paused" in said(chat)
        await chat.pilot.press("full_stop")
        assert "1 of 1 right" in said(chat), "it is on until it is switched off"
        await chat.pilot.press("p")
        assert "guessing" not in said(chat)


async def test_without_a_round_there_is_nothing_to_present(launch: Launch) -> None:
    async with launch(notices=True) as chat:
        await chat.pilot.press("f8")
        assert chat.app.screen is chat.screen and "ask something first" in chat.notices()


async def test_a_key_that_would_do_nothing_is_not_offered(launch: Launch) -> None:
    async with launch(screen_options=STILL) as chat:
        await chat.ask_and_wait()
        await chat.pilot.press("f5")
        assert "phase" in drawn(chat) and "Space" not in drawn(chat)
        await chat.pilot.press("f8")
        assert "[ ] phase" in drawn(chat) and "Space" not in drawn(chat)
