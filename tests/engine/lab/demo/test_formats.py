"""The table of formats: it rounds as the engine does, and says what it found."""

from __future__ import annotations

import torch

from engine.kernels.weights.kinds import weight_of
from engine.lab.demo.formats import Quality, rounded_target, table
from engine.lab.demo.model.files import PAIR
from engine.loading.checkpoint import load_target
from engine.models.packed import packable

CPU = torch.device("cpu")


def test_it_rounds_as_the_engine_packs() -> None:
    rounded, packed = rounded_target(PAIR, "int4"), load_target(PAIR / "target", CPU, lambda *_: None, weights="int4")
    plain = load_target(PAIR / "target", CPU, lambda *_: None)
    names = list(packable(plain))
    for name in names:
        path, _, stem = name.rpartition(".")
        assert torch.equal(rounded.get_parameter(name), weight_of(packed.get_submodule(path), stem).restored())
        assert not torch.equal(rounded.get_parameter(name), plain.get_parameter(name))
    assert len(names) > 50


def test_the_table_has_a_row_for_each_domain() -> None:
    found = [Quality("bf16", "code", 100, 0.98, 5.8), Quality("int4", "code", 100, 0.97, 4.36)]
    assert table(found).splitlines()[2] == "| code | 98 % | 97 % | 5.80 | 4.36 |"
