"""``python -m engine.lab.bench.sizes``: computes ``hub/sizes.json`` by the memory plan, from the published configs."""

from __future__ import annotations

import json
from typing import Any

import torch

from ...commands import MADE_FORMATS, WeightFormat
from ...decoding.decoder import LEAST_PREFILL_CHUNK
from ...hub.pairs import KNOWN_PAIRS
from ...hub.sizes import CONTEXTS, FILE
from ...loading.memory_plan import plan_of
from ...measured.ceiling import token_bytes
from ...models.packed import shape_of
from ...models.registry import FAMILIES
from .shapes import PUBLISHED, Shape, read_shape

CUDA = torch.device("cuda")
"""The device that is planned for; nothing is put there."""


def sizes() -> list[dict[str, Any]]:
    """The sizes of all pairs, as ``hub/sizes.py`` reads them."""
    shapes = {target: read_shape(name) for name, (target, _) in PUBLISHED.items()}
    return [_size(pair.target, shapes[pair.target.partition("/")[2]]) for pair in KNOWN_PAIRS]


def _formats(target: str) -> tuple[WeightFormat, ...]:
    """The formats in which people run a target; one that is published in few bits stays so."""
    (family,) = (each for each in FAMILIES if target in [pair.target for pair in each.pairs])
    return ("bf16", *family.published_in) if family.published_in else MADE_FORMATS


def _size(target: str, shape: Shape) -> dict[str, Any]:
    models = {weights: shape_of(shape.target, torch.bfloat16, weights) for weights in _formats(target)}
    plans = {
        weights: plan_of(model, shape.drafter, 0, CUDA, weights, 0, device_rounds=model.has_decode_pass)
        for weights, model in models.items()
    }
    plan, drafter = plans["bf16"], shape.drafter
    tight = plan_of(
        models["bf16"], drafter, 0, CUDA, "bf16", 0,
        device_rounds=True, chunk=LEAST_PREFILL_CHUNK, embedding_on_host=True,
    )  # fmt: skip
    assert drafter is not None
    return {
        "target": target,
        "weights": {weights: each.target_bytes for weights, each in plans.items()},
        "token": {weights: token_bytes(model) for weights, model in models.items()},
        "drafter": plan.drafter_bytes,
        "draftings": [each.nbytes for each in plan.draftings],
        "caches": {str(each): plan.state_bytes(each) for each in CONTEXTS if each <= shape.target.max_context},
        "work": plan.work,
        "least_work": tight.work,
        "embedding": tight.on_host,
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(sizes(), indent=1) + "\n")
