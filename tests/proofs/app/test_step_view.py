"""Looking at rounds: the step view, time travel, slow motion and lenses, keys in and screen out."""

from __future__ import annotations

from dflash_tui.core.rounds.travel import Position
from support.scripted_engine import PAGE
from tests.app.conftest import Launch
from tests.app.test_step_view import history, place, shown

LONG = PAGE * 40


async def test_the_view_stands_while_the_answer_goes_on(launch: Launch) -> None:
    async with launch(answer=LONG, round_seconds=0.01) as chat:
        await chat.ask()
        await chat.until(lambda: len(chat.screen.chat.reducer.turns) > 0 and len(history(chat)) > 40)
        await chat.pilot.press("f3", "comma")
        stands, top = place(chat), chat.log.scroll_offset.y
        assert stands is not None and chat.screen.chat.busy
        steps = len(history(chat))
        await chat.until(lambda: len(history(chat)) > steps + 40)
        assert place(chat) == stands and chat.log.scroll_offset.y == top
        assert "the engine goes on" in shown(chat)
        await chat.pilot.press("end")
        assert place(chat) is None
        await chat.until(lambda: chat.log.scroll_offset.y == chat.log.max_scroll_y)


async def test_earlier_answers_can_be_visited_and_a_new_question_leads_back(launch: Launch) -> None:
    async with launch() as chat:
        await chat.ask_and_wait()
        await chat.ask_and_wait("again")
        await chat.pilot.press("f3", "home", "comma")
        first = chat.screen.chat.reducer.turns[0]
        assert place(chat) == Position(1, len(first.rounds) - 1)
        assert "of answer 1" in shown(chat)
        chat.prompt.focus()
        await chat.ask_and_wait("and again")
        assert place(chat) is None


# Slow motion


async def test_esc_skips_to_the_end_of_a_slowed_answer(launch: Launch) -> None:
    async with launch(answer=LONG[:6000], round_seconds=0.004) as chat:
        await chat.ask("/pace 0.05")
        await chat.ask()
        await chat.until(lambda: place(chat) is not None)
        await chat.until(lambda: not chat.screen.chat.busy)
        await chat.pilot.press("escape")
        assert place(chat) is None and not chat.screen.viewer.motion.active
        assert chat.screen.viewer.motion.pace == 0.05, "the next answer is as slow"
        await chat.ask("/pace full")
        assert chat.screen.viewer.motion.pace == 1.0


# Lenses
