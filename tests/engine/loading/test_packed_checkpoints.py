"""Checkpoints in few bits, as they are published: the engine computes what ``transformers`` does with what the numbers
stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import Gemma4ForConditionalGeneration

from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.kinds import weight_of
from engine.kernels.weights.plain import PlainWeight
from engine.kv_cache.cache import Cache
from engine.loading import checkpoint
from engine.loading.checkpoint import load_target, target_on_meta
from engine.loading.stored_format import StoredFormat, stored_format
from engine.models.target import TargetModel
from support.checkpoints import FULL, SLIDING, VOCAB_SIZE, random_target, randomised, target_config
from support.packed_checkpoints import FP8_CONFIG, PREFIX, as_fp8, as_int4, int4_config, write_packed
from tests.engine.conftest import CPU, no_progress

IDS = torch.randint(0, VOCAB_SIZE, (40,), generator=torch.Generator().manual_seed(3))


@torch.inference_mode()
def logits(target: TargetModel) -> torch.Tensor:
    cache = Cache(target.config.layers, 64, 64, torch.float32, CPU)
    return target.logits(target(IDS, 0, cache).hidden)


Write = Callable[[Path], torch.Tensor]
"""Writes a checkpoint; the logits that ``transformers`` computes with what it stands for."""


def in_fp8(split: bool) -> Write:
    def write(folder: Path) -> torch.Tensor:
        model = random_target([SLIDING, FULL], moe=True, seed=21)
        write_packed(folder, model, FP8_CONFIG, as_fp8, split=split)
        with torch.inference_mode():
            return model(input_ids=IDS[None]).logits[0]

    return write


def in_int4(split: bool) -> Write:
    def write(folder: Path) -> torch.Tensor:
        model = random_target([SLIDING, FULL], moe=True, seed=22)
        keep = "layers.0.mlp"
        write_packed(folder, model, int4_config(32), as_int4(32), split=split, keep=lambda name: keep in name)
        with torch.inference_mode():
            return model(input_ids=IDS[None]).logits[0]

    return write


@pytest.mark.parametrize(
    ("write", "stored"),
    [
        (in_fp8(split=True), StoredFormat("fp8")),
        (in_fp8(split=False), StoredFormat("fp8")),
        (in_int4(split=True), StoredFormat("int4", 32, "BF16")),
        (in_int4(split=False), StoredFormat("int4", 32, "BF16")),
    ],
    ids=["FP8, each expert by itself", "FP8, stacked", "INT4, each expert by itself", "INT4, stacked"],
)
def test_logits_are_those_of_what_the_numbers_stand_for(
    write: Write, stored: StoredFormat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = write(tmp_path)
    assert stored_format(tmp_path) == stored
    planned = target_on_meta(tmp_path, CPU, weights=None)
    monkeypatch.delattr(checkpoint, "layout_of")  # loading takes the plan's
    target = load_target(tmp_path, CPU, no_progress)
    torch.testing.assert_close(logits(target), expected, atol=1e-4, rtol=1e-4)
    shapes = {name: (part.shape, part.dtype) for name, part in target.named_parameters()}
    assert {name: (part.shape, part.dtype) for name, part in planned.named_parameters()} == shapes


@pytest.mark.parametrize(("group", "scales"), [(64, torch.float16), (128, torch.float32)])
def test_larger_groups_and_scales_of_other_dtypes(group: int, scales: torch.dtype, tmp_path: Path) -> None:
    config = target_config([SLIDING], moe=True)
    sizes = {"hidden_size": 256, "intermediate_size": 128, "moe_intermediate_size": 128, "head_dim": 32}
    for name, size in sizes.items():
        setattr(config.text_config, name, size)
    model = randomised(Gemma4ForConditionalGeneration(config), seed=23)
    of_bf16 = as_int4(group)

    def pack(name: str, weight: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        tensors, meaning = of_bf16(name, weight)
        return tensors | {"_scale": tensors["_scale"].to(scales)}, meaning

    write_packed(tmp_path, model, int4_config(group), pack, split=False)
    assert stored_format(tmp_path).group == group
    target = load_target(tmp_path, CPU, no_progress)
    gate_up = weight_of(target.get_submodule("layers.0.experts"), "gate_up_proj")
    assert isinstance(gate_up, Int4Weight) and gate_up.scales is not None
    assert (gate_up.group, gate_up.scales.dtype) == (group, scales)
    with torch.inference_mode():
        expected = model(input_ids=IDS[None]).logits[0]
    torch.testing.assert_close(logits(target), expected, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("name", ["pack-quantized", "float-quantized"])
def test_what_compressed_tensors_wrote_is_read_back(name: str) -> None:
    """``tests/engine/stored/write.py`` had it write both, and say what they stand for."""
    folder = Path(__file__).parents[1] / "stored" / name
    target = load_target(folder, CPU, no_progress)
    expected = load_file(folder / "expected.safetensors")
    assert len(expected) == 6, "the projections of a layer whose values are its keys"
    for stored, part in expected.items():
        weight = weight_of(target.get_submodule(stored.removeprefix(PREFIX).removesuffix(".weight")))
        assert not isinstance(weight, PlainWeight)
        assert torch.equal(weight.restored().to(part.dtype), part), stored
