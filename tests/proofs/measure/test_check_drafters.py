"""The check of drafters on a GPU finds what it is for, and takes no rounding for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.products.head import HeadOutput
from engine.kernels.round.choices import Candidates
from engine.kernels.round.lattice import Tables
from engine.kernels.round.markov import MarkovWeights
from engine.kernels.toolchain.jit import INTERPRETED
from engine.lab.bench.shapes import TINY
from engine.models.dflash import dspine_pass, markov, picker
from measure.gpu.check_drafters import DRAFTERS, Built, Published, build, compared, in_small

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

Plant = Callable[[pytest.MonkeyPatch, Built], None]


def a_wrong_row(monkeypatch: pytest.MonkeyPatch, _: Built) -> None:
    """Candidates are heard by their own place, not by the one behind."""
    monkeypatch.setattr(dspine_pass, "befores", lambda tokens, anchor: tokens)


def a_wrong_table(_: pytest.MonkeyPatch, built: Built) -> None:
    pass_ = built.drafting
    assert isinstance(pass_, dspine_pass.DSpineDraftPass)
    pass_._table = pass_._table.roll(1, 0)


def a_stride(monkeypatch: pytest.MonkeyPatch, _: Built) -> None:
    score = dspine_pass.score_edges

    def scored(refined: Tensor, head: Tensor, candidates: Tensor, edges: Tensor) -> None:
        score(refined, head, candidates, edges)
        edges.copy_(edges.mT.clone())

    monkeypatch.setattr(dspine_pass, "score_edges", scored)


def the_next_rows_channels(monkeypatch: pytest.MonkeyPatch, _: Built) -> None:
    """In DFlash 2's trees."""
    choose = picker.choose_edges

    def chosen(candidates: Candidates, tables: Tables, *others: Any) -> None:
        assert tables.weights is not None
        choose(candidates, tables._replace(weights=tables.weights.roll(-1, 0)), *others)

    monkeypatch.setattr(picker, "choose_edges", chosen)


def another_tokens_channels(monkeypatch: pytest.MonkeyPatch, _: Built) -> None:
    """In DSpark's chains."""
    launch = markov.markov

    def launched(out: HeadOutput, rows: Tensor, weights: MarkovWeights, *others: Any) -> None:
        launch(out, rows, replace(weights, before=weights.before.roll(1, 0)), *others)

    monkeypatch.setattr(markov, "markov", launched)


CASES: list[tuple[str, Plant | None]] = [
    ("DSpine of Qwen3.8-27B", None),
    ("DSpine of Qwen3.8-27B", a_wrong_row),
    ("DSpine of Qwen3.8-27B", a_wrong_table),
    ("DSpine of Qwen3.8-27B", a_stride),
    ("DFlash 2 of 35B-A3B", None),
    ("DFlash 2 of 35B-A3B", the_next_rows_channels),
    ("DSpark of 26B-A4B", another_tokens_channels),
    ("EAGLE-3 of 12B", None),
]


def with_one_layer(config: dict[str, Any]) -> dict[str, Any]:
    less = {"num_hidden_layers": 1, "layer_types": config.get("layer_types", [])[:1] or None}
    inner = {name: with_one_layer(value) for name, value in config.items() if name == "transformer_layer_config"}
    return config | {name: value for name, value in less.items() if name in config} | inner


@pytest.mark.slow
@pytest.mark.parametrize(("name", "plant"), CASES)
def test_rounding_holds_and_a_fault_does_not(name: str, plant: Plant | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels in bf16."""
    case = DRAFTERS[name]
    small = Published(TINY, case.drafts, with_one_layer(in_small(case.config)))
    built = build(small, False, torch.device("cpu"), torch.bfloat16, 104)
    if plant is not None:
        plant(monkeypatch, built)
    found = compared(built, case.drafts, in_8_bits=False)
    assert all(verdict.holds for verdict in found) == (plant is None), [str(verdict) for verdict in found]
