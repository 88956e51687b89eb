"""Keeps what is measured once from one start to the next, in a file each, named after the card, the weights and the
code: costs of rounds, tiles of kernels, a CPU's products, and whether a GPU unpacks weights well beside a prompt's."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..files.cache_folder import cache_folder
from ..files.fingerprint import fingerprint_of_code
from ..speculation.costs import CostTable, RoundCosts

MeasurementKind = Literal["ceiling", "costs", "products", "tiles", "unpacking"]
Stored = TypeVar("Stored")


def known_costs(identity: tuple[str, ...], time: Callable[[], CostTable | None]) -> CostTable | None:
    """The cost table kept for an identity, or what ``time`` finds, which is then kept. ``identity`` names all that a
    cost depends on: code, card, weights, context. An unreadable file is rewritten."""
    table = stored("costs", identity, table_of)
    if table is None:
        table = time()
        if table is not None:
            store("costs", identity, asdict(table))
    return table


def stored(kind: MeasurementKind, identity: tuple[str, ...], read: Callable[[dict[str, Any]], Stored]) -> Stored | None:
    """The file for an identity as ``read`` returns it; None where there is none, or one that can't be read."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        data = json.loads(_path(kind, identity).read_text("utf-8"))
        if data["identity"] == list(identity):
            return read(data)
    return None


def store(kind: MeasurementKind, identity: tuple[str, ...], data: dict[str, Any]) -> None:
    """Writes ``data`` to the file for an identity. Where nothing can be written, the next start measures again."""
    with suppress(OSError):
        _write(_path(kind, identity), json.dumps({"identity": identity, **data}))


def _path(kind: MeasurementKind, identity: tuple[str, ...]) -> Path:
    return cache_folder(kind) / f"{_digest(identity)}.json"


def table_of(data: dict[str, Any]) -> CostTable:
    """The table from its JSON. Raises ``ValueError``, ``TypeError`` or ``KeyError`` for what is none."""
    contexts = tuple(map(int, data["contexts"]))
    costs = tuple(RoundCosts(**each | {"verify": tuple(each["verify"])}) for each in data["costs"])
    times = [value for each in costs for value in (each.draft, each.ingest, each.lookup, each.step, *each.verify)]
    sound = all(isfinite(value) and value >= 0 for value in times) and all(min(each.verify) > 0 for each in costs)
    if not costs or not sound or list(contexts) != sorted(contexts) or len(contexts) != len(costs):
        raise ValueError("not a table of costs")
    if any(len(each.verify) != len(costs[0].verify) or len(each.verify) < 2 for each in costs):
        raise ValueError("not a table of costs for every width")
    return CostTable(contexts, costs)


def _write(path: Path, text: str) -> None:
    """Writes a file whole or not at all: another start may read at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(text, "utf-8")
    new.replace(path)


def _digest(identity: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join((*identity, fingerprint_of_code())).encode()).hexdigest()[:16]
