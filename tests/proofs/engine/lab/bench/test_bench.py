"""The bench: its arithmetic against published figures, its scripted parts against the decoder, and a run in small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import pytest
import torch

from engine.commands import WeightFormat
from engine.decoding.decoder import Decoder
from engine.errors import DeviceFailure
from engine.kernels.toolchain.jit import INTERPRETED
from engine.lab.bench import command, measure
from engine.lab.bench.command import main, run
from engine.lab.bench.floor import Floor, floor_of
from engine.lab.bench.measure import Bench, acceptance_script
from engine.lab.bench.routing import force_routing, forced_scores
from engine.lab.bench.shapes import Shape, read_shape
from engine.lab.bench.weights import random_pair
from engine.measured.ceiling import Ceiling
from engine.models.packed import shape_of
from tests.engine.small_decoders import run_turn, settings

CPU = torch.device("cpu")


def floor(
    shape: Shape, dtype: torch.dtype = torch.bfloat16, in_8_bits: bool = False, weights: WeightFormat = "bf16"
) -> Floor:
    return floor_of(shape, shape_of(shape.target, dtype, weights), in_8_bits)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    shape = read_shape("tiny", 6)
    yield Bench(Decoder(*random_pair(shape, CPU), 1024), floor(shape, torch.float32), Ceiling(1e10, 1e10))


# --- shapes and bytes


def test_floor_of_the_26b_pair() -> None:
    """Figures that were worked out by hand from the published shapes; contexts add what the keys and values take."""
    pair = floor(read_shape("26B-A4B"))
    assert pair.verify(8, 0) == pytest.approx(7.645e9, rel=1e-3)
    assert pair.verify(82.4, 0) == pytest.approx(34.202e9, rel=1e-3)
    assert pair.draft(0) == pytest.approx(2.336e9, rel=1e-3)
    eighth = floor(read_shape("26B-A4B"), in_8_bits=True)
    # Half the bytes, and a scale per row: of the head, and of the drafter's 118 016 rows.
    assert pair.draft(0) - eighth.draft(0) == 262_144 * (2816 - 4) + 429_654_016 - 4 * 118_016
    assert pair.verify(8, 0) == eighth.verify(8, 0)
    assert pair.verify(8, 1024) - pair.verify(8, 0) == pytest.approx(0.23e9, rel=0.02)
    assert pair.verify(8, 32_768) - pair.verify(8, 0) == pytest.approx(0.205e-3 * 4.3e12, rel=0.02)
    assert pair.prefill(4096, 2048) == pytest.approx(2 * (50.466e9 - 1.476e9) + 1.476e9, rel=1e-3)


@pytest.mark.parametrize(("weights", "bits"), [("fp8", 8), ("int4", 4.5)])
def test_floor_of_packed_weights(weights: WeightFormat, bits: float) -> None:
    """Head, router and norms stay in bf16; FP8 adds a scale per row, INT4 one of 16 bits per 32 numbers."""
    whole, packed = floor(read_shape("26B-A4B")), floor(read_shape("26B-A4B"), weights=weights)
    assert packed.head == whole.head
    assert packed.expert / whole.expert == pytest.approx(bits / 16, rel=3e-3)
    assert packed.body / whole.body == pytest.approx(bits / 16, rel=2e-2)


# --- routing


def test_forced_routing_reaches_every_router(bench: Bench) -> None:
    scores = forced_scores("correlated", 6, 16, CPU)
    force_routing(bench.decoder.target, scores)
    rows = torch.randn(300, 64)
    for layer, own in zip(bench.decoder.target.layers, scores, strict=True):
        _, ids = layer.router(rows)
        assert torch.equal(ids[:16], own[:16].topk(4).indices)
        assert torch.equal(ids[256:], ids[:44]), "long passes use the rows over again"
    kept = [layer.router.forced for layer in bench.decoder.target.layers]
    force_routing(bench.decoder.target, forced_scores("uniform", 6, 16, CPU))
    for layer, before, old in zip(bench.decoder.target.layers, kept, scores, strict=True):
        assert layer.router.forced is before, "captured rounds read the scores where they stood"
        assert not torch.equal(before, old)
    force_routing(bench.decoder.target, None)
    assert not torch.equal(bench.decoder.target.layers[0].router(rows)[1], ids)


# --- scripted acceptance


@pytest.mark.parametrize("mean", [1.0, 2.5, 7.8, 15.9, 16.0])
@pytest.mark.parametrize("rounds", [10, 64])
def test_a_script_has_the_mean_it_was_asked_for(mean: float, rounds: int) -> None:
    script = acceptance_script(mean, 16, rounds)
    assert len(script) == rounds and all(0 <= count <= 15 for count in script)
    assert 1 + fmean(script) == pytest.approx(mean, abs=0.5 / rounds)


def test_rounds_follow_the_script(bench: Bench) -> None:
    """Cursors, caches and the drafter's context move as in real decoding; only the verdict is given."""
    decoder = bench.decoder
    bench.script.play([3, 0, 15, 7])
    answer = run_turn(decoder, bench.random_ids(20), settings(max_new_tokens=60, block_size=8))
    bench.script.play()
    speculative = [done for done in answer.rounds if done.draft_ids][:6]
    assert [done.num_accepted for done in speculative] == [3, 0, 7, 7, 3, 0]
    assert all(done.emitted[:-1] == done.draft_ids[: done.num_accepted] for done in speculative)
    assert decoder.prefix.tokens == [*bench.random_ids(20), *answer.ids[:-1]]
    assert decoder.draft_cache is not None and decoder.draft_cache.length <= decoder.cache.length


# --- the command


def test_a_whole_run_in_small(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "WARM_UP", 1)  # reading what was recorded is most of the time
    words = "--shape tiny --layers 6 --device cpu --widths 4 --contexts 40 --prompts 40 --count 2 --profile"
    assert run([*words.split(), "--out", str(tmp_path / "out.json")]) == 0
    printed = capsys.readouterr().out
    results = json.loads((tmp_path / "out.json").read_text())
    assert [(each["width"], each["routing"]) for each in results["rounds"]] == [(4, "uniform"), (4, "correlated")]
    assert all(each["tokens_per_second"] > 0 for each in results["rounds"])
    assert [each["rows"] for each in results["prompts"]] == [40]
    assert {each["width"] for each in results["profiles"]} == {1, 4, 40}
    assert "context 40, correlated routing" in printed


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter")
def test_rounds_of_the_device_are_measured_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measure, "WARM_UP", 0)  # the interpreter takes seconds for a round
    words = "--shape tiny --layers 6 --device cpu --widths 1 --contexts 40 --prompts --routing uniform --count 1"
    assert run([*words.split(), "--rounds", "device", "--out", str(tmp_path / "out.json")]) == 0
    results = json.loads((tmp_path / "out.json").read_text())
    assert results["rounds_by"] == "device" and results["prepare_seconds"] > 0
    (figures,) = results["rounds"]
    assert figures["width"] == 1 and figures["round_ms"] > 0 and figures["acceptance_length"] == 1


def test_what_cannot_be_measured_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "0"]) == 2
    assert "must be 1 or more" in capsys.readouterr().err


def test_what_has_no_room_is_told_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "available_memory", lambda _device: 150 * 10**9)
    with pytest.raises(DeviceFailure, match=r"gpt-oss-120b doesn't fit in bf16: .*of weights") as failure:
        run(["--shape", "gpt-oss-120b", "--device", "cpu"])
    assert "--weights mxfp4 (" in str(failure.value.hint) and "--weights bf16" not in str(failure.value.hint)
