"""What rounds cost on a GPU, as measured there: ``python -m tests.engine.recorded_costs BENCH.json`` records it.

``BENCH.json`` is what ``python -m engine.bench --out BENCH.json`` writes there. What was recorded before of the same
shape goes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

import torch

from engine.bench.shapes import SHAPES, read_shape
from engine.kernels.jit import MAX_ROWS
from engine.tuning.costs import every_width
from engine.width import CostTable, RoundCosts

FILE = Path(__file__).with_name("costs.json")
KEPT = ("width", "context", "routing", "verify_ms", "draft_ms")
BYTES_PER_MS = 3.3e9
"""Three quarters of what an H200's memory copies: what passes of large products reach."""
KEEP_MS = 0.003
"""A launch that copies 34 KB."""
TREE_MS = 0.5
"""What a tree adds to a drafted round of 31B. A guess: not measured yet, until a table is timed with trees."""
LONG = 32_000
"""Tokens that stand before the prompts of long texts."""


def record(path: Path) -> None:
    """Adds the figures of a bench to ``FILE``. Raises ``ValueError`` for rounds of a shape that is none of ours."""
    bench = json.loads(path.read_text())
    if bench["shape"] not in SHAPES:
        raise ValueError(f"{path} measures {bench['shape']}, not one of {', '.join(SHAPES)}")
    rounds = [{name: each[name] for name in KEPT} for each in bench["rounds"]]
    for each in rounds:
        each |= {name: round(each[name], 3) for name in ("verify_ms", "draft_ms")}
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {}
    recorded[bench["shape"]] = {"device": bench["device"], "torch": bench["torch"], "rounds": rounds}
    lines = json.dumps(recorded, indent=1).replace("\n    ", " ").replace("\n   }", " }")
    FILE.write_text(lines + "\n")


def recorded_tables() -> dict[str, CostTable]:
    """By shape and routing, such as ``26B-A4B uniform``."""
    return {
        f"{shape} {routing}": _table(shape, list(rounds))
        for shape, found in json.loads(FILE.read_text()).items()
        for routing, rounds in groupby(sorted(found["rounds"], key=_routing), _routing)
    }


def takes_trees(name: str) -> bool:
    """Whether ``auto`` verifies trees: on dense models. On a mixture of experts rows are too dear."""
    return read_shape(name.split()[0]).target.moe is None


def with_trees(table: CostTable, tree_ms: float = TREE_MS) -> CostTable:
    """The same table where every draft is a tree's."""
    return replace(table, costs=tuple(replace(costs, draft=costs.draft + tree_ms) for costs in table.costs))


def _routing(entry: dict[str, Any]) -> str:
    return str(entry["routing"])


def _table(shape: str, rounds: list[dict[str, Any]]) -> CostTable:
    contexts = sorted({each["context"] for each in rounds})
    return CostTable(tuple(contexts), tuple(_costs(shape, [e for e in rounds if e["context"] == c]) for c in contexts))


def _costs(shape: str, rounds: list[dict[str, Any]]) -> RoundCosts:
    draft = median(each["draft_ms"] for each in rounds if each["width"] > 1)
    return RoundCosts(draft, every_width({each["width"]: each["verify_ms"] for each in rounds}), ingest_ms(shape))


def ingest_ms(shape: str) -> float:
    """Telling the drafter of a token: a sixteenth of the weights that it takes, and a copy that keeps it till then."""
    drafter = read_shape(shape).drafter
    assert drafter is not None
    hidden, taps = drafter.hidden_size, len(drafter.target_layer_ids)
    keys_values = sum(2 * layer.num_kv_heads * layer.head_dim for layer in drafter.layers)
    weights = hidden * (taps * hidden + keys_values) * torch.bfloat16.itemsize
    return weights / BYTES_PER_MS / MAX_ROWS + KEEP_MS


if __name__ == "__main__":
    record(Path(sys.argv[1]))
