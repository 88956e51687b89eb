"""Cost tables kept from one start to the next: a file each, named after the card, the weights and the code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from ..files.fingerprint import fingerprint_of_code
from ..speculation.costs import CostTable, RoundCosts


def known_costs(identity: tuple[str, ...], time: Callable[[], CostTable | None]) -> CostTable | None:
    """The table kept for an identity, else what ``time`` finds, which is then kept. ``identity`` names all a cost
    depends on: code, card, weights, context. An unreadable file is rewritten."""
    path = cache_folder() / f"{_digest(identity)}.json"
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        kept = json.loads(path.read_text("utf-8"))
        if kept["identity"] == list(identity):
            return table_of(kept)
    table = time()
    if table is not None:
        with suppress(OSError):
            _write(path, json.dumps({"identity": identity, **asdict(table)}))
    return table


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dflash-chat" / "costs"


def table_of(data: dict[str, Any]) -> CostTable:
    """A table from its JSON. Raises ``ValueError``, ``TypeError`` or ``KeyError`` for what is none."""
    contexts = tuple(int(context) for context in data["contexts"])
    costs = tuple(
        RoundCosts(float(each["draft"]), tuple(map(float, each["verify"])), float(each["ingest"]))
        for each in data["costs"]
    )
    times = [value for each in costs for value in (each.draft, each.ingest, *each.verify)]
    sound = all(isfinite(value) and value >= 0 for value in times) and all(min(each.verify) > 0 for each in costs)
    if not costs or not sound or list(contexts) != sorted(contexts) or len(contexts) != len(costs):
        raise ValueError("not a table of costs")
    if any(len(each.verify) != len(costs[0].verify) or len(each.verify) < 2 for each in costs):
        raise ValueError("not a table of costs for every width")
    return CostTable(contexts, costs)


def _write(path: Path, text: str) -> None:
    """Whole or not at all: another start may read at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(text, "utf-8")
    new.replace(path)


def _digest(identity: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join((*identity, fingerprint_of_code())).encode()).hexdigest()[:16]
