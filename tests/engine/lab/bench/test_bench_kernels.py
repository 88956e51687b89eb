"""The kernel bench: every case launches, counts its bytes, and one that fails says so. Times mean nothing here."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from engine.commands import WeightFormat
from engine.kernels.decode.tiles import Tiles
from engine.kernels.toolchain.card import HOPPER
from engine.kernels.toolchain.jit import INTERPRETED
from engine.lab.bench.command import main
from engine.lab.bench.kernels import command as kernels
from engine.lab.bench.kernels.case import Case
from engine.lab.bench.kernels.cases import cases_of
from engine.lab.bench.shapes import read_shape

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter")

CPU = torch.device("cpu")
PACKED: tuple[WeightFormat, ...] = ("int4",)


@cache
def tiny_cases(weights: WeightFormat = "bf16") -> dict[str, Case]:
    return {case.name: case for case in cases_of(read_shape("tiny", 6), torch.float32, (40,), HOPPER, weights)}


def packed_cases(weights: WeightFormat) -> list[str]:
    """Those that read other bytes than in fp32."""
    return [name for name, case in tiny_cases(weights).items() if case.num_bytes != tiny_cases()[name].num_bytes]


CASES = [("bf16", name) for name in tiny_cases()] + [
    (weights, name) for weights in PACKED for name in packed_cases(weights)
]


@pytest.mark.parametrize(("weights", "name"), CASES)
def test_every_case_launches_with_the_tiles_in_use(weights: WeightFormat, name: str) -> None:
    case = tiny_cases(weights)[name]
    launches = case.prepare(CPU, torch.float32, 2)(case.tiles)
    launches[0]()
    assert len(launches) == 2


def test_bytes_of_the_26b_layers() -> None:
    cases = {case.name: case for case in cases_of(read_shape("26B-A4B"), torch.bfloat16, (2048,), HOPPER)}
    assert cases["qkv, sliding"].num_bytes == 2 * 8192 * 2816
    assert cases["output, full"].num_bytes == 2 * 8192 * 2816
    assert cases["head"].num_bytes == 2 * 738_197_504
    assert cases["draft head"].num_bytes == 738_197_504 + 4 * 262_144
    experts = next(case for name, case in cases.items() if name.startswith("experts gate and up, 1 rows"))
    assert experts.num_bytes == (8 * 2 * 704 + 2112) * 2 * 2816  # the dense down runs beside them
    assert cases["attention, sliding, 16 rows, 2048"].num_bytes == 2 * 2 * 8 * (1024 + 16) * 256
    assert cases["attention, sliding, 1 rows, 2048"].num_bytes == 2 * 2 * 8 * (1024 + 1) * 256


def test_bytes_of_packed_layers_are_their_weights_own() -> None:
    """FP8: a byte a number and a scale a row. INT4: half a byte, and a scale of two bytes every 32."""
    per_number = {"fp8": lambda rows, depth: rows * (depth + 4), "int4": lambda rows, depth: rows * depth * 9 // 16}
    for weights, size in per_number.items():
        cases = {case.name: case for case in cases_of(read_shape("26B-A4B"), torch.bfloat16, (2048,), HOPPER, weights)}
        assert cases["qkv, sliding"].num_bytes == size(8192, 2816)
        assert cases["gate and up"].num_bytes == size(2 * 2112, 2816) + 2 * 128 * 2816  # the router is as it was
        down = next(case for name, case in cases.items() if name.startswith("experts down, 1 rows"))
        assert down.num_bytes == size(8 * 2816, 704)
        assert cases["head"].num_bytes == 2 * 738_197_504


def test_a_kernel_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tiles have a size that no kernel takes."""
    case = tiny_cases()["qkv, sliding"]
    assert isinstance(case.tiles, Tiles)
    bad = replace(case, tiles=replace(case.tiles, columns=24))
    monkeypatch.setattr(kernels.TimingPlan, "cases", lambda plan: [bad])
    figures = kernels.time_case(kernels.TimingPlan("tiny", "cpu", (40,)), case.name)
    assert figures.us is None and figures.failure and not figures.broken


@pytest.mark.ci  # and so do they, for one: the command below
def test_processes_of_their_own_time_the_same() -> None:
    plan = kernels.TimingPlan("tiny", "cpu", (40,))
    done = list(kernels.time_cases(plan, ["after attention", "no such kernel", "pick"]))
    assert [each if isinstance(each, str) else each.name for each in done] == [
        "after attention",
        "no such kernel: ValueError there is no kernel called no such kernel",
        "pick",
    ]
    assert all(isinstance(each, str) or (each.us or 0) > 0 for each in done)


def test_the_command_prints_a_table_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["kernels", "--shape", "tiny", "--device", "cpu", "--contexts", "40", "--only", "down", "--weights", "int4"]
    assert main([*words, "--out", str(tmp_path / "out.json")]) == 0
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["weights"] == "int4"
    names = [each["name"] for each in written["kernels"]]
    assert "down" in names and "draft down" in names and all("down" in name for name in names)
    assert all(each["us"] > 0 for each in written["kernels"]) and written["lost"] == []
    last = capsys.readouterr().out.splitlines()[-1]
    assert "draft down" in last
