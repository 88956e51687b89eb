"""A short soak: the limits are for a machine that has nothing else to do, so that these are far wider. See soak.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from measure.app.soak import LIMITS, SCENES, Scene, play
from measure.app.waits import WAITS

SLACK = 10
"""Times the limits of an idle machine; for latencies, since memory does not depend on the load."""
SHORT = [scene for scene in SCENES if scene.name in ("typing", "scrolling back")]


@pytest.mark.parametrize("scene", SHORT, ids=lambda scene: scene.name)
def test_the_screen_keeps_up(scene: Scene, tmp_path: Path) -> None:
    facts = play(scene, 3.0, tmp_path)
    assert facts["tok/s"] > 300
    for name, limit in LIMITS.items():
        if name in facts:
            allowed = limit if name in ("growth MB", "CPU %") else limit * SLACK
            assert facts[name] <= allowed, f"{name}: {facts[name]:.1f}"


@pytest.mark.alone
@pytest.mark.parametrize("name", ["paste of 5 MB, streaming", "line of 200 000, streaming"])
def test_nobody_waits_long(name: str) -> None:
    limit, take = WAITS[name]
    assert max(take(5)) <= limit * SLACK
