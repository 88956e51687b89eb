"""Before the first question: a round that lives, until somebody does something."""

from __future__ import annotations

import pytest

from dflash_tui.app.widgets.rounds import living_round
from dflash_tui.app.widgets.rounds.living_round import LivingRound
from dflash_tui.core.figures.labels import CAPTIONS
from dflash_tui.core.rounds.playback import PHASES
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
