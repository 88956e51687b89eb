"""Nobody waits long: the limits are for a machine that has nothing else to do, so that these are far wider."""

from __future__ import annotations

import pytest

from measure.app.waits import WAITS

SLACK = 10
"""Times the limits of an idle machine."""


@pytest.mark.alone
@pytest.mark.parametrize("name", ["paste of 5 MB, streaming", "line of 200 000, streaming"])
def test_nobody_waits_long(name: str) -> None:
    limit, take = WAITS[name]
    assert max(take(5)) <= limit * SLACK
