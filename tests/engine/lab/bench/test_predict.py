"""Predictions: bytes by bandwidth, and what was measured beyond them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.lab.bench.command import main
from engine.lab.bench.predict import Measured, read_bench
from engine.tools.gpus import CARDS

ROUND = {
    "context": 128, "routing": "uniform", "width": 16, "verify_bytes": 8e9, "draft_bytes": 2e9, "round_ms": 4.0,
    "acceptance_length": 8.0,
}  # fmt: skip
BENCH: dict[str, Any] = {
    "device": "NVIDIA H200", "ceiling": {"copy": 4e12}, "shape": "26B-A4B", "weights": "int4",
    "rounds": [ROUND, ROUND | {"width": 1}],
}  # fmt: skip


def test_milliseconds_elsewhere() -> None:
    """10 GB take 2.5 of 4 ms: 1.5 are overhead. At a quarter of the bandwidth, 10 ms and those, or four times 4."""
    card = next(card for card in CARDS if card.name == "RTX 4090")
    measured = Measured("int4", 128, "uniform", 16, 10e9, 4.0, 8.0, copy_rate=4e12, nominal=4 * card.bandwidth)
    assert measured.on(card) == (pytest.approx(11.5), pytest.approx(16.0))


def test_the_table_marks_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for weights in ("int4", "fp8"):
        (tmp_path / f"{weights}.json").write_text(json.dumps(BENCH | {"weights": weights}))
    assert main(["predict", str(tmp_path / "int4.json"), str(tmp_path / "fp8.json"), "--widths", "16"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Predictions") and "217 code" in out
    lines = {tuple(line.split()[:4])[1:4]: line for line in out.splitlines() if line.startswith(("RTX", " ", "R"))}
    assert "doesn't fit" in lines["3090", "fp8", "128"] and "doesn't fit" not in lines["5090", "fp8", "128"]
    assert "doesn't fit" not in lines["3090", "int4", "128"]


@pytest.mark.parametrize("content", ["", "{}", json.dumps(BENCH | {"device": "cpu"})])
def test_what_is_no_bench_of_a_known_card_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_text(content)
    with pytest.raises(ValueError, match=r"holds no figures|bandwidth is not known"):
        read_bench(tmp_path / "bench.json")
