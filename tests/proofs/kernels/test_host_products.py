"""What a CPU multiplies a target's weights by: bits, levels, and how the choice is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from engine.kernels.weights.fbgemm import STEPS, FbgemmWeight, has_fbgemm
from engine.kernels.weights.host_products import (
    FLOATS,
    HOST_MAKERS,
    HostProducts,
    for_head,
    for_levels,
    for_others,
)
from engine.measured import host_products as measured

SHAPES = (192, 576), (576, 1536)
MOST_ROWS = 17
needs_fbgemm = pytest.mark.skipif(not has_fbgemm(), reason="PyTorch has no FBGEMM for this CPU")


def rows_that_differ(kind: str, rows: int, depth: int) -> list[tuple[int, int]]:
    """(row, among how many), where its bits aren't those that it has alone."""
    torch.manual_seed(rows)
    levels = torch.randint(0, 16, (rows, depth)).float()
    levels[:, ::32], levels[:, 1::32] = 0, 15  # the ends of every group
    weight = HOST_MAKERS[kind](levels - 7.5)
    assert weight is not None and weight.shape == (rows, depth)
    x = torch.randn(MOST_ROWS, depth)
    x[:, 3] *= 50  # as some channels of real models
    alone = torch.cat([weight.linear(x[row : row + 1]) for row in range(MOST_ROWS)])
    assert (alone - x @ weight.restored().T).norm() < 5e-3 * alone.norm()
    return [
        (row, among)
        for among in range(2, MOST_ROWS + 1)
        for row, same in enumerate((weight.linear(x[:among]) == alone[:among]).all(-1).tolist())
        if not same
    ]


def offered() -> list[str]:
    return sorted({*for_levels(), *for_others(), *for_head()} - {FLOATS})


@pytest.mark.parametrize("kind", offered())
@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_has_the_same_bits_alone_and_among_others(kind: str, shape: tuple[int, int]) -> None:
    assert rows_that_differ(kind, *shape) == []


@needs_fbgemm
def test_fbgemm_rounds_only_the_rows_and_does_not_saturate() -> None:
    x = torch.cat((torch.randn(3, 200), torch.full((1, 200), -1.0), torch.zeros(1, 200)))
    weight = FbgemmWeight.of(torch.cat((torch.randn(95, 200), torch.full((1, 200), 127.0))))
    exact = x.double() @ weight.restored().double().T
    most = x.abs().amax(-1, keepdim=True) / STEPS / 2 * weight.restored().abs().sum(-1)
    assert ((weight.linear(x) - exact).abs() <= 1.01 * most + 1e-4).all()


@pytest.mark.parametrize(
    ("times", "chosen"),
    [
        ({"first": (1, 1, 1), "other": (0.9, 0.9, 0.9)}, "first"),  # too little to tell from a busy minute
        ({"first": (1, 1, 4), "other": (2, 2, 1)}, "first"),
        ({"first": (1, 1, 8), "other": (1.2, 1.2, 1)}, "other"),
    ],
)
def test_a_kind_is_chosen_by_all_numbers_of_rows(times: dict[str, tuple[float, ...]], chosen: str) -> None:
    assert measured.fastest(("first", "other"), times) == chosen


def test_the_choice_is_kept_and_measured_anew_where_it_is_damaged_or_another_s(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found, asked = HostProducts.of_this_cpu(), []

    def measure() -> HostProducts:
        asked.append(None)
        return found

    def start() -> int:
        measured.host_products.cache_clear()
        assert measured.host_products() == found
        return len(asked)

    monkeypatch.setattr(measured, "_measured", measure)
    try:
        assert [start(), start()] == [1, 1]
        (path,) = (tmp_path / "dflash-chat" / "products").iterdir()
        right = json.loads(path.read_text("utf-8"))
        for number, wrong in enumerate(("{", "[]", json.dumps({**right, "head": "abacus"}), "")):
            path.write_text(wrong, "utf-8")
            assert start() == number + 2 and json.loads(path.read_text("utf-8")) == right
        monkeypatch.setattr(measured, "cpu_name", lambda: "another machine")
        assert start() == 6
        monkeypatch.setattr(torch, "__version__", "another PyTorch")
        assert [start(), start()] == [7, 7]
    finally:
        measured.host_products.cache_clear()
