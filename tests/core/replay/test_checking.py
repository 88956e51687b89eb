"""Settings that a trace names: those of this program, and others."""

from __future__ import annotations

from typing import Any

import pytest

from dflash_tui.core.sessions.checked_events import checked_event
from engine.events import TurnStarted, event_to_dict


@pytest.mark.parametrize(
    ("settings", "known"),
    [
        ({"block_size": "auto", "seed": 1}, {"block_size": "auto", "seed": 1}),
        ({"block_size": 8, "verify": "all"}, {"block_size": 8}),
        ({"block_size": "all", "speculation": False, "temperature": 1}, {"temperature": 1, "speculation": False}),
        ({"block_size": True, "seed": False, "thinking": 1, "top_p": "x", "temperature": None}, {}),
        ({"block_size": 99, "seed": -1}, {}),
    ],
)
def test_known_settings_are_kept(settings: dict[str, Any], known: dict[str, Any]) -> None:
    event = checked_event(event_to_dict(TurnStarted(1, 40, 0, settings, "hi")))
    assert isinstance(event, TurnStarted) and event.settings == known
