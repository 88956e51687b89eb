"""The step view in large cells, for a hall: at every size, phase by phase, with the game of guessing and recordings."""

from __future__ import annotations

import pytest

from dflash_tui.app.widgets.rounds.large_round import HallRound, round_lines
from dflash_tui.app.widgets.rounds.step_table import Scene
from dflash_tui.core.replay.bundled import find_recording
from dflash_tui.core.replay.recording import read_recording
from dflash_tui.core.rounds.cells import draft_text, show_blanks
from dflash_tui.core.rounds.inspection import inspect_step
from dflash_tui.core.rounds.playback import PHASES
from dflash_tui.core.settings.config import ScreenOptions
from tests.app.conftest import Driver
from tests.app.replaying import replaying

SHARED = {"screen_options": ScreenOptions(reduced_motion=True)}


async def drawn(chat: Driver) -> str:
    await chat.pilot.pause()
    return "\n".join(strip.text for strip in chat.app.screen._compositor.render_strips())


def scene(chat: Driver) -> Scene:
    shown = chat.screen.query_one(HallRound).scene
    assert shown is not None and chat.screen.viewer.hall
    return shown


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (60, 18)])
async def test_a_round_is_seen_phase_by_phase(chat: Driver, size: tuple[int, int]) -> None:
    await chat.pilot.resize_terminal(*size)
    await chat.pilot.press("f8")
    for phase in PHASES:
        assert scene(chat).phase == phase
        words = await drawn(chat)
        assert "Ask" not in words and "bonus" in words, "nothing but the round, and all of its places"
        for draft in scene(chat).inspection.step.draft:
            assert (show_blanks(draft_text(draft))[:6] in words) == scene(chat).reached("draft")
        await chat.pilot.press("pagedown")
    assert scene(chat).phase == PHASES[0]
    before = scene(chat).inspection.step.index
    await chat.pilot.press("full_stop", "pageup")
    assert scene(chat).inspection.step.index == before and scene(chat).phase == "emit"
    await chat.pilot.press("escape")
    assert not chat.screen.viewer.open and not chat.screen.viewer.motion.teaching and chat.screen.prompt.has_focus


async def test_the_game_says_that_it_is_on_and_keeps_the_score(chat: Driver) -> None:
    await chat.pilot.press("f8", "p", "right_square_bracket")
    step = chat.screen.viewer.step
    assert step is not None and len(step.draft) == 15
    words = await drawn(chat)
    assert "How many of the 15" in words and "guessing is on" in words
    assert chat.screen.viewer.snapshot is not None and chat.screen.viewer.snapshot.step == step.index - 1
    await chat.pilot.press("9", "9")
    assert "from 0 to 15" in chat.notices()
    await chat.pilot.press(*f"{step.num_accepted:02}")
    words = await drawn(chat)
    assert "right" in words and "guessing: 1 of 1" in words
    await chat.pilot.press("p")
    assert "guessing" not in (await drawn(chat)).replace("guess,", "")


def test_cells_grow_with_the_terminal_and_a_correction_is_as_large_as_a_guess() -> None:
    rounds = read_recording(find_recording("code")).steps
    step = next(step for step in rounds if step.emitted[-1].verdict == "corrected" and len(step.draft) == 15)
    sizes = []
    for width, height in ((56, 8), (76, 11), (116, 18), (196, 42)):
        lines = round_lines(Scene(inspect_step(step, 0, 0, None)), width, height)
        assert len(lines) <= height and max(line.cell_length for line in lines) <= width + 1
        grounds = [str(span.style) for line in lines for span in line.spans]
        names = ("verdict-rejected", "landed-corrected")
        sizes.append(tuple(sum(f" on ${name}" in ground for ground in grounds) for name in names))
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    rejected, corrected = sizes[-1]
    assert corrected >= rejected - 3 >= 3


@pytest.mark.parametrize("key", ["f5", "f8"])
async def test_a_recording_waits_for_slow_motion(key: str) -> None:
    """Paused, it hands out nothing but what a key asks for, up to the answer behind this one."""
    async with replaying(find_recording("maths"), pace=0.2) as replay:
        viewer = replay.screen.viewer
        await replay.until(lambda: viewer.travel.latest() is not None)
        await replay.pilot.press(key, "space")
        stood, played = viewer.position, replay.source.played
        assert stood is not None and not viewer.motion.playing
        await replay.pilot.pause(0.5)
        assert viewer.position == stood and replay.source.played == played
        for _ in range(100):
            await replay.pilot.press("pagedown")
            if viewer.position is not None and viewer.position.turn != stood.turn:
                break
        assert viewer.position is not None and (viewer.position.turn, viewer.position.step) == (stood.turn + 1, 0)
        assert not viewer.motion.playing and viewer.motion.phase != PHASES[-1]
        await replay.pilot.press("escape")
        assert not viewer.motion.teaching and replay.source.playing
