"""The frame loop: when it draws."""

from __future__ import annotations

import pytest

from dflash_tui.app.pump import FramePump

from .conftest import Launch


async def test_the_end_of_an_answer_waits_for_no_frame(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    async with launch(round_seconds=0.03) as chat:
        monkeypatch.setattr(FramePump, "_interval", 60.0)
        await chat.ask()
        await chat.until(lambda: not chat.screen.chat.busy and "acceptance length" in chat.log.text)
