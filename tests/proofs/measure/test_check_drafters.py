"""The check of drafters on a GPU finds what it is for, and takes no rounding for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

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


def rows_of_the_next(monkeypatch: pytest.MonkeyPatch, _: Built) -> None:
    """DFlash 2's channels are those of the next row."""
    tables = picker.SelectorPicker._tables
    monkeypatch.setattr(picker.SelectorPicker, "_tables", lambda self, rows: tables(self, rows.roll(-1, 0)))


def the_anchor_behind_all(monkeypatch: pytest.MonkeyPatch, _: Built) -> None:
    """DSpark's chain never hears of its own tokens."""
    launch = markov.markov

    def launched(*given: object) -> None:
        out, rows, weights, *others = given
        launch(out, rows, type(weights)(weights.before * 0, weights.after), *others)  # type: ignore[arg-type, call-arg]

    monkeypatch.setattr(markov, "markov", launched)


CASES: list[tuple[str, Plant | None]] = [
    ("DSpine of Qwen3.8-27B", None),
    ("DSpine of Qwen3.8-27B", a_wrong_row),
    ("DSpine of Qwen3.8-27B", a_wrong_table),
    ("DSpine of Qwen3.8-27B", a_stride),
    ("DFlash 2 of 35B-A3B", None),
    ("DFlash 2 of 35B-A3B", rows_of_the_next),
    ("DSpark of 26B-A4B", the_anchor_behind_all),
    ("EAGLE-3 of 12B", None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "plant"), CASES)
def test_rounding_holds_and_a_fault_does_not(name: str, plant: Plant | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels in bf16."""
    case = DRAFTERS[name]
    small = Published(TINY, case.drafts, in_small(case.config) | {"num_hidden_layers": 1})
    built = build(small, False, torch.device("cpu"), torch.bfloat16, 104)
    if plant is not None:
        plant(monkeypatch, built)
    found = compared(built, case.drafts, in_8_bits=False)
    assert all(verdict.holds for verdict in found) == (plant is None), [str(verdict) for verdict in found]
