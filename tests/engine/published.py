"""Configs as they were published: those of the bench's shapes lie with the bench, others beside this file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.shapes import published_config

OTHERS = Path(__file__).parent / "configs"


def published(name: str) -> dict[str, Any]:
    other = OTHERS / f"{name}.config.json"
    config: dict[str, Any] = json.loads(other.read_text()) if other.exists() else published_config(name)
    return config
