"""Half a minute of what ``python -m measure.serve.soak`` does for half an hour."""

from __future__ import annotations

import pytest

from measure.serve.soak import SCRIPTED, soak


@pytest.mark.ci
@pytest.mark.slow
def test_a_server_among_clients_that_vanish() -> None:
    assert soak(SCRIPTED, 20) == []
