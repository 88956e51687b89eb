"""Targets whose weights are packed: the modules compute with what the packed numbers stand for."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from engine.commands import WeightFormat
from engine.decoding import pass_check
from engine.decoding.pass_check import products_depart
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.kinds import weight_of
from engine.kernels.weights.plain import PlainWeight
from engine.kv_cache.cache import Cache
from engine.loading import choose_rounds
from engine.models.packed import PackedLinear, hold, pack, packable
from engine.models.target import TargetModel
from support.shapes import random_pair, read_shape

CPU = torch.device("cpu")


def logits(target: TargetModel) -> torch.Tensor:
    cache = Cache(target.config.layers, 64, 64, torch.float32, CPU)
    with torch.inference_mode():
        return target.logits(target(torch.arange(20), 0, cache).hidden)


@pytest.mark.parametrize("weights", ["fp8", "int4"])
def test_a_packed_target_is_the_one_that_its_numbers_stand_for(weights: WeightFormat) -> None:
    packed, _ = random_pair(read_shape("tiny"), CPU, weights=weights)
    whole, _ = random_pair(read_shape("tiny"), CPU)
    names = list(packable(whole))
    assert not any(word in name for name in names for word in ("router", "embed", "norm"))
    assert isinstance(packed.get_submodule("layers.0.mlp.gate_proj"), PackedLinear)
    before = logits(whole)
    for name in names:
        path, _, stem = name.rpartition(".")
        hold(whole, name, PlainWeight(weight_of(packed.get_submodule(path), stem).restored()))
    torch.testing.assert_close(logits(packed), logits(whole), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(logits(whole), before, atol=1e-3), "nothing was packed"


def test_packing_a_whole_model_is_as_packing_its_tensors() -> None:
    packed, _ = random_pair(read_shape("tiny"), CPU, weights="fp8")
    whole, _ = random_pair(read_shape("tiny"), CPU)
    pack(whole, lambda tensor: type(weight_of(packed.get_submodule("layers.0.mlp.gate_proj"))).of(tensor))  # type: ignore[attr-defined]
    expected = dict(packed.named_parameters())
    assert all(torch.equal(part, expected[name]) for name, part in whole.named_parameters())


def test_products_of_packed_weights_are_tried_before_they_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    target, _ = random_pair(read_shape("tiny"), CPU, weights="int4")
    monkeypatch.setattr(pass_check, "SOME_EXPERTS", 2)
    monkeypatch.setattr(pass_check, "MANY_ROWS", 20)
    assert products_depart(target) is None
    product = Int4Weight.grouped
    calls = count()

    def wrong_now_and_then(self: Int4Weight, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        found = product(self, x, ends)
        found[7, 3] += next(calls) == 2
        return found

    monkeypatch.setattr(Int4Weight, "grouped", wrong_now_and_then)
    assert "INT4 weights of shape [16, 64, 64] are wrong" in (products_depart(target) or "")


def test_products_that_are_right_are_tried_once_and_wrong_ones_at_each_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found: list[str | None] = ["wrong", "wrong", None]
    monkeypatch.setattr(choose_rounds, "products_depart", lambda target: found.pop(0))
    pairs = {weights: random_pair(read_shape("tiny"), CPU, weights=weights)[0] for weights in ("int4", "fp8")}
    int4, fp8 = (SimpleNamespace(target=target, device=CPU) for target in pairs.values())
    for _ in range(2):
        with pytest.raises(choose_rounds.WrongResult):
            choose_rounds._try_products(int4)  # type: ignore[arg-type]
    for _ in range(2):
        choose_rounds._try_products(int4)  # type: ignore[arg-type]
    found.append("wrong")
    with pytest.raises(choose_rounds.WrongResult):  # of another format they weren't tried
        choose_rounds._try_products(fp8)  # type: ignore[arg-type]
