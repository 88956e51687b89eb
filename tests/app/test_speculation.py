"""Speculation can be switched on only where there is something to speculate with."""

from __future__ import annotations

from dataclasses import replace

from .conftest import Launch


async def test_without_a_drafter_the_text_alone_guesses(launch: Launch) -> None:
    async with launch(notices=True) as chat:
        reducer = chat.screen.chat.reducer
        reducer.ready = replace(reducer.ready, drafter=None)
        await chat.ask("/speculation off")
        await chat.until(lambda: not chat.screen.chat.settings.speculation)
        await chat.ask("/speculation drafter")
        await chat.until(lambda: "No drafter is loaded" in chat.notices())
        assert not chat.screen.chat.settings.speculation
        await chat.ask("/speculation on")
        await chat.until(lambda: chat.screen.chat.settings.speculation)
