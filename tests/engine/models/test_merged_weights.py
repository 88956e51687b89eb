"""Weights that one kernel reads lie side by side as soon as all of them are loaded, whatever the order."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import Tensor

from engine.kernels.weights.fp8 import Fp8Weight
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.kinds import weight_of
from engine.kernels.weights.plain import PlainWeight
from engine.kernels.weights.weight import Weight
from engine.models.merged_weights import Together, side_by_side
from engine.models.packed import hold
from tests.engine.conftest import TinyPair


@pytest.mark.parametrize("order", [("q_proj", "k_proj", "v_proj"), ("v_proj", "q_proj", "k_proj")])
@pytest.mark.parametrize("make", [PlainWeight, Fp8Weight.of, Int4Weight.of])
def test_the_last_to_be_loaded_merges(
    make: Callable[[Tensor], Weight], order: tuple[str, ...], dense_pair: TinyPair
) -> None:
    target = deepcopy(dense_pair.target)
    attention, together = target.layers[0].self_attn, Together(target, target.read_together)

    def held() -> list[Weight]:
        return [weight_of(part) for part in (attention.q_proj, attention.k_proj, attention.v_proj)]

    def places() -> set[int]:
        return {weight.values.untyped_storage().data_ptr() for weight in held()}

    floats = [make(weight.restored()).restored() for weight in held()]
    for number, name in enumerate(order):
        assert len(places()) == 3, f"{number} are loaded"
        path = f"layers.0.self_attn.{name}.weight"
        hold(target, path, make(target.get_parameter(path).detach()))
        together.loaded(path)
    assert len(places()) == 1
    assert all(torch.equal(weight.restored(), before) for weight, before in zip(held(), floats, strict=True))
    merged = side_by_side(attention.q_proj, attention.k_proj, attention.v_proj)
    assert merged.values.untyped_storage().data_ptr() in places(), "a kernel copies nothing more"
