"""What makers say of sampling is read, and what is damaged is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.files.generation_config import published_sampling

SAID = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.1}
ALL = {name: value for name, value in SAID.items() if name != "do_sample"}


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (SAID, ALL),
        ({**SAID, "do_sample": False}, None),
        ({"temperature": 0.6}, None),
        ({"do_sample": True, "repetition_penalty": 1.0}, None),
        ({**SAID, "temperature": "warm", "top_k": True, "top_p": 7}, {"repetition_penalty": 1.1}),
        ({**SAID, "top_k": 0, "repetition_penalty": 1}, {"temperature": 0.6, "top_p": 0.95}),
        ([], None),
    ],
)
def test_what_makers_say_of_sampling(tmp_path: Path, content: Any, read: dict[str, float] | None) -> None:
    assert published_sampling(tmp_path) is None
    (tmp_path / "generation_config.json").write_text(json.dumps(content))
    assert published_sampling(tmp_path) == read
