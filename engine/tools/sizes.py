"""``python -m engine.tools.sizes``: works out ``hub/sizes.json`` by the memory plan, from the published configs."""

from __future__ import annotations

import json
from typing import Any, get_args

import torch

from ..bench.shapes import PUBLISHED, Shape, read_shape
from ..commands import WeightFormat
from ..hub.pairs import KNOWN_PAIRS
from ..hub.sizes import CONTEXTS, FILE
from ..loading.memory_plan import plan_of
from ..models.packed import shape_of

CUDA = torch.device("cuda")
"""What is planned for; nothing is put there."""


def sizes() -> list[dict[str, Any]]:
    """As ``hub/sizes.py`` reads them."""
    shapes = {target: read_shape(name) for name, (target, _) in PUBLISHED.items()}
    return [_size(pair.target, shapes[pair.target.partition("/")[2]]) for pair in KNOWN_PAIRS]


def _size(target: str, shape: Shape) -> dict[str, Any]:
    plans = {
        weights: plan_of(
            shape_of(shape.target, torch.bfloat16, weights), shape.drafter, 0, CUDA, weights, 0, device_rounds=True
        )
        for weights in get_args(WeightFormat)
    }
    plan, drafter = plans["bf16"], shape.drafter
    assert drafter is not None
    return {
        "target": target,
        "weights": {weights: each.target_bytes for weights, each in plans.items()},
        "drafter": plan.drafter_bytes,
        "draftings": [each.nbytes for each in plan.draftings],
        "caches": {str(context): plan.state_bytes(context) for context in CONTEXTS},
        "work": plan.work,
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(sizes(), indent=1) + "\n")
