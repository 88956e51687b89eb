"""The presenter's screen: the round alone, at every size, and the game of guessing."""

from __future__ import annotations

import pytest
from textual.widgets import Static

from dflash_tui.app.chat.presenter import PresenterScreen
from dflash_tui.app.widgets.rounds.large_round import LargeRound, round_lines
from dflash_tui.app.widgets.rounds.step_table import Scene
from dflash_tui.core.export.document import collect
from dflash_tui.core.rounds.cells import draft_text, show_blanks
from dflash_tui.core.rounds.inspection import inspect_step
from dflash_tui.core.rounds.playback import PHASES
from dflash_tui.core.settings.config import ScreenOptions
from dflash_tui.core.traces.bundled import find_trace
from dflash_tui.core.traces.reader import read_trace
from tests.app.conftest import Driver, Launch
from tests.app.replaying import replaying

STILL = ScreenOptions(reduced_motion=True)
SHARED = {"screen_options": STILL}


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
async def test_a_round_is_seen_phase_by_phase(chat: Driver, size: tuple[int, int]) -> None:
    await chat.pilot.resize_terminal(*size)
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


async def test_the_game_says_that_it_is_on_and_keeps_the_score(chat: Driver) -> None:
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


async def test_a_key_that_would_do_nothing_is_not_offered(chat: Driver) -> None:
    await chat.pilot.press("f5")
    assert "phase" in drawn(chat) and "Space" not in drawn(chat)
    await chat.pilot.press("f8")
    assert "[ ] phase" in drawn(chat) and "Space" not in drawn(chat)


def tally(chat: Driver) -> str:
    screen = presenter(chat)
    screen.show()
    return str(screen.query_one("#present-tally", Static).render())


async def test_a_tally_tells_passes_against_tokens(chat: Driver) -> None:
    await chat.pilot.press("f8")
    place, history = chat.screen.viewer.place, chat.screen.chat.turns[-1].history
    assert place is not None
    before, behind = history.tokens_before(place.step), history.tokens_before(place.step + 1)
    assert behind > before
    assert tally(chat) == f"{before} token written · {place.step} pass of the target (alone: {before})"
    await chat.pilot.press(*["pagedown"] * 4)
    assert tally(chat) == f"{behind} tokens written · {place.step + 1} passes of the target (alone: {behind})"
    await chat.pilot.press("pagedown")
    assert chat.screen.viewer.place is not None and chat.screen.viewer.place.step == place.step + 1
    await chat.pilot.press("pageup")
    assert chat.screen.viewer.place is not None and chat.screen.viewer.place.step == place.step


async def test_the_place_of_the_bonus_is_there_from_the_beginning(chat: Driver) -> None:
    await chat.pilot.press("f8")
    for _ in PHASES:
        await chat.pilot.pause()
        assert "bonus" in drawn(chat)
        await chat.pilot.press("pagedown")


def test_cells_grow_with_the_terminal_and_a_correction_is_as_large_as_a_guess() -> None:
    answers = collect(read_trace(find_trace("code")).events()).answers()
    rounds = (step for answer in answers for step in answer.steps)
    step = next(step for step in rounds if step.emitted[-1].verdict == "corrected" and len(step.draft) == 15)
    scene = Scene(inspect_step(step, 0, 0, None))
    sizes = []
    for width, height in ((56, 8), (76, 11), (116, 18), (196, 42)):
        lines = round_lines(scene, width, height)
        assert len(lines) <= height and max(line.cell_length for line in lines) <= width + 1
        grounds = [str(span.style) for line in lines for span in line.spans]
        names = ("verdict-rejected", "landed-corrected")
        sizes.append(tuple(sum(f" on ${name}" in ground for ground in grounds) for name in names))
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    rejected, corrected = sizes[-1]
    assert corrected >= rejected - 3 >= 3


async def test_a_pause_holds_while_a_recording_has_more_answers() -> None:
    async with replaying(find_trace("lesson"), pace=0.2) as replay:
        viewer = replay.screen.viewer
        await replay.until(lambda: viewer.travel.latest() is not None)
        await replay.pilot.press("f8", "space")
        stood, played = viewer.place, replay.source.played
        assert stood is not None and not viewer.motion.playing
        await replay.pilot.pause(0.5)
        assert viewer.place == stood and not viewer.motion.playing and replay.source.played == played
        for _ in range(len(PHASES) + 1):  # a key of its own fetches what is still to come
            await replay.pilot.press("pagedown")
        assert viewer.place is not None and viewer.place.step > stood.step and not viewer.motion.playing


async def test_f1_tells_the_presenters_keys_and_words(chat: Driver) -> None:
    await chat.pilot.press("f8", "f1")
    await chat.until(lambda: "These keys" in drawn(chat) or "these keys" in drawn(chat))
    assert "next phase" in drawn(chat)


async def test_a_pause_holds_while_a_question_that_waited_is_answered(launch: Launch) -> None:
    async with launch() as chat:
        await chat.ask_and_wait("one")
        await chat.pilot.press("f8", "space")
        viewer = chat.screen.viewer
        place = viewer.place
        assert place is not None and viewer.motion.active and not viewer.motion.playing
        chat.screen.desk.ask("two")
        await chat.until(lambda: not chat.screen.chat.busy and len(chat.screen.chat.turns) == 2)
        assert viewer.place == place and not viewer.motion.playing
