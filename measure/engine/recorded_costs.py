"""Costs of rounds on a GPU, as they were measured there: ``python -m measure.engine.recorded_costs BENCH.json`` records
them.

``BENCH.json`` is written there by ``python -m engine.lab.bench --out BENCH.json``. It replaces what was recorded before
of the same shape."""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

import torch

from engine.kernels.toolchain.jit import MAX_ROWS
from engine.lab.bench.shapes import SHAPES, read_shape
from engine.measured.costs import every_width
from engine.models.dflash.config import DFlashConfig
from engine.speculation.costs import CostTable, RoundCosts

FILE = Path(__file__).with_name("costs.json")
KEPT = ("width", "context", "routing")
TIMES = ("verify_ms", "draft_ms", "tree_ms", "grow_ms")
"""Times in a recording; the last two where trees were timed: a pass over a tree's rows, and growing one."""
BYTES_PER_MS = 3.3e9
"""Three quarters of the rate at which an H200's memory copies, which passes of large products reach."""
KEEP_MS = 0.003
"""Milliseconds of a launch that copies 34 KB."""
LOOKUP_MS = 0.03
"""Milliseconds of searching 32 000 tokens; shorter texts take less."""
LONG = 32_000
"""Tokens before the prompts of long texts."""


def record(path: Path) -> None:
    """Adds the figures of a bench to ``FILE``. Raises ``ValueError`` for rounds of a shape that isn't known."""
    bench = json.loads(path.read_text())
    if bench["shape"] not in SHAPES:
        raise ValueError(f"{path} measures {bench['shape']}, not one of {', '.join(SHAPES)}")
    rounds = [
        {name: each[name] for name in KEPT} | {name: round(each[name], 3) for name in TIMES if name in each}
        for each in bench["rounds"]
    ]
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {}
    recorded[bench["shape"]] = {"device": bench["device"], "torch": bench["torch"], "rounds": rounds}
    lines = json.dumps(recorded, indent=1).replace("\n    ", " ").replace("\n   }", " }")
    FILE.write_text(lines + "\n")


def recorded_tables() -> dict[str, CostTable]:
    """Cost tables of rounds whose drafts are chains, by shape and routing, such as ``26B-A4B uniform``."""
    return _tables("draft_ms", "verify_ms")


def tree_tables() -> dict[str, CostTable]:
    """Cost tables of rounds whose drafts are trees, for the dense models, on which ``auto`` verifies trees."""
    return _tables("grow_ms", "tree_ms")


def _tables(draft: str, verify: str) -> dict[str, CostTable]:
    return {
        f"{shape} {routing}": _table(shape, list(rounds), draft, verify)
        for shape, found in json.loads(FILE.read_text()).items()
        for routing, rounds in groupby(sorted(found["rounds"], key=_routing), _routing)
        if verify in found["rounds"][0]
    }


def _routing(entry: dict[str, Any]) -> str:
    return str(entry["routing"])


def _table(shape: str, rounds: list[dict[str, Any]], draft: str, verify: str) -> CostTable:
    contexts = sorted({each["context"] for each in rounds})
    costs = (_costs(shape, [e for e in rounds if e["context"] == context], draft, verify) for context in contexts)
    return CostTable(tuple(contexts), tuple(costs))


def _costs(shape: str, rounds: list[dict[str, Any]], draft: str, verify: str) -> RoundCosts:
    told = ingest_ms(shape)
    lookup = MAX_ROWS * (told - KEEP_MS) + LOOKUP_MS
    drafts = median(each[draft] for each in rounds if each["width"] > 1)
    return RoundCosts(drafts, every_width({each["width"]: each[verify] for each in rounds}), told, lookup)


def ingest_ms(shape: str) -> float:
    """Milliseconds for the drafter to take a token in: a sixteenth of reading the weights, and the copy that keeps it
    till then."""
    drafter = read_shape(shape).drafter
    assert isinstance(drafter, DFlashConfig)
    hidden, taps = drafter.hidden_size, len(drafter.target_layer_ids)
    keys_values = sum(2 * layer.num_kv_heads * layer.head_dim for layer in drafter.layers)
    weights = hidden * (taps * hidden + keys_values) * torch.bfloat16.itemsize
    return weights / BYTES_PER_MS / MAX_ROWS + KEEP_MS


if __name__ == "__main__":
    record(Path(sys.argv[1]))
