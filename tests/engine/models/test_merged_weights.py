"""Weights that one kernel reads lie side by side as soon as all of them are loaded, whatever the order."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn

from engine.models.merged_weights import Together, side_by_side
from tests.engine.conftest import TinyPair


def storages(modules: list[nn.Linear]) -> set[int]:
    return {module.weight.untyped_storage().data_ptr() for module in modules}


@pytest.mark.parametrize("order", [("q_proj", "k_proj", "v_proj"), ("v_proj", "q_proj", "k_proj")])
def test_the_last_to_be_loaded_merges(order: tuple[str, ...], dense_pair: TinyPair) -> None:
    target = deepcopy(dense_pair.target)
    attention = target.layers[0].self_attn
    parts = [attention.q_proj, attention.k_proj, attention.v_proj]
    before = [part.weight.clone() for part in parts]
    together = Together(target, target.read_together)
    for name in order[:-1]:
        together.loaded(f"layers.0.self_attn.{name}.weight")
    together.loaded("layers.0.self_attn.o_proj.weight")
    assert len(storages(parts)) == 3
    together.loaded(f"layers.0.self_attn.{order[-1]}.weight")
    assert len(storages(parts)) == 1
    assert all(torch.equal(part.weight, weight) for part, weight in zip(parts, before, strict=True))
    assert side_by_side(*parts).values.data_ptr() == attention.q_proj.weight.data_ptr(), "a kernel copies nothing more"
