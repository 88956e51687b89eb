"""Before the first question: a round that lives, until somebody does something."""

from __future__ import annotations

import pytest

from dflash_tui.app.widgets.rounds import living_round
from dflash_tui.app.widgets.rounds.living_round import LivingRound
from dflash_tui.app.widgets.starters import Starters
from dflash_tui.core.figures.labels import CAPTIONS
from dflash_tui.core.rounds.playback import PHASES
from dflash_tui.core.settings.config import ScreenOptions
from tests.app.conftest import Driver, Launch


def shown(chat: Driver) -> str:
    return str(chat.screen.query_one(LivingRound).render())


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_a_round_lives_until_the_first_key(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(living_round, "SECONDS", dict.fromkeys(PHASES, 0.02))
    async with launch(size=size) as chat:
        living = chat.screen.query_one(LivingRound)
        await chat.until(lambda: living.inspection is not None and living.size.height > 1)
        seen: set[str] = set()

        def look() -> bool:
            seen.add(shown(chat).splitlines()[0].partition(":")[0])
            return len(seen) == len(CAPTIONS)

        await chat.until(look)
        await chat.pilot.press("w")
        assert not living.moves and "quicksort" in shown(chat) and "correct" in shown(chat)
        assert all(line.cell_length <= living.size.width + 1 for line in living.render().split())


async def test_enter_asks_the_first_of_the_questions_to_begin_with(launch: Launch) -> None:
    async with launch() as chat:
        first = chat.screen.query_one(Starters).questions[0]
        await chat.pilot.press("enter")
        await chat.until(lambda: bool(chat.engine.asked) and not chat.screen.chat.busy)
        await chat.pilot.press("enter")
        assert [ask.messages[-1].content for ask in chat.engine.asked] == [first], "and only where they stand"


async def test_it_is_still_for_who_wants_no_motion(launch: Launch) -> None:
    async with launch(screen_options=ScreenOptions(reduced_motion=True)) as chat:
        living = chat.screen.query_one(LivingRound)
        await chat.until(lambda: living.inspection is not None)
        assert not living.moves and "correct" in shown(chat)
