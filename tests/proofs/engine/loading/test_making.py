"""Weights that become packed while a checkpoint of floats loads, and packed ones that become floats."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from engine.commands import WeightFormat
from engine.errors import WeightsFailure
from engine.files.pinned_reader import read_staged, stored_tensors
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.kinds import MAKERS, bytes_of, weight_of
from engine.kernels.weights.plain import PlainWeight
from engine.loading import checkpoint
from engine.loading.checkpoint import load_target, target_on_meta
from engine.loading.grid import rounded
from engine.models.packed import packable
from engine.models.target import TargetModel
from support.checkpoints import FULL, SLIDING, random_target
from support.packed_checkpoints import FP8_CONFIG, PREFIX, as_fp8, as_int4, int4_config, is_packed, write_packed
from tests.engine.conftest import CPU, no_progress
from tests.engine.edited import edit_config, edit_tensors
from tests.engine.loading.test_packed_checkpoints import IDS, logits

KINDS = [SLIDING, FULL]


@pytest.fixture(scope="module")
def floats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("floats")
    random_target(KINDS, moe=True, seed=61).bfloat16().save_pretrained(folder)
    return folder


def named(target: TargetModel, name: str) -> Any:
    path, _, stem = name.rpartition(".")
    return weight_of(target.get_submodule(path), stem)


@pytest.mark.parametrize("weights", ["fp8", "int4"])
def test_floats_are_packed_while_they_load(weights: WeightFormat, floats: Path) -> None:
    packed = load_target(floats, CPU, no_progress, weights=weights)
    plain = load_target(floats, CPU, no_progress)
    names = set(packable(plain))
    for name, part in plain.named_parameters():
        expected = MAKERS[weights if name in names else "bf16"](part.detach())
        assert torch.equal(named(packed, name).restored(), expected.restored()), name
    planned = target_on_meta(floats, CPU, weights=weights)
    assert {name: part.shape for name, part in planned.named_parameters()} == {
        name: part.shape for name, part in packed.named_parameters()
    }
    assert bytes_of(planned) == bytes_of(packed)


# --- Google's QAT: floats that lie on a grid


def on_grid(weight: Tensor, scales: torch.dtype, largest: int, generator: torch.Generator) -> Tensor:
    """bf16 of whole numbers times a scale for 32 neighbours; in most groups none is -8, in some none is far from 0."""
    numbers = torch.randint(-8, 8, (*weight.shape[:-1], weight.shape[-1] // 32, 32), generator=generator)
    most = torch.randint(1, largest + 1, (*numbers.shape[:-1], 1), generator=generator)
    numbers = torch.minimum(numbers, most - 1).maximum(-most)
    numbers[..., 0, :] = 0
    steps = (torch.randn(numbers.shape[:-1], generator=generator) * 0.01).to(scales)
    return (numbers * steps.float()[..., None]).flatten(-2).bfloat16()


@pytest.mark.parametrize("scales", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("largest", [8, 5])
def test_a_grid_is_found_exactly(largest: int, scales: torch.dtype) -> None:
    weight = on_grid(torch.empty(3, 512, 256), scales, largest, torch.Generator().manual_seed(largest))
    packed = rounded(weight)
    assert packed.scales is not None and packed.scales.dtype == scales, "the narrowest that is exact"
    assert (packed.restored().bfloat16().float() - weight.float()).abs().max() == 0
    ordinary = (Int4Weight.of(weight).restored().bfloat16() != weight).float().mean()
    assert ordinary > 0.05, "what takes the largest for -8 is wrong for some"


def test_groups_off_the_grid_are_rounded_and_change_no_others() -> None:
    weight = on_grid(torch.empty(256, 256), torch.bfloat16, 8, torch.Generator().manual_seed(0))
    weight[7, 32:64] = torch.randn(32, generator=torch.Generator().manual_seed(1)) * 0.01
    packed = rounded(weight)
    wrong = packed.restored().bfloat16() != weight
    assert wrong[7, 32:64].any() and wrong.sum() == wrong[7, 32:64].sum()
    assert packed.scales is not None and packed.scales.dtype == torch.bfloat16
    assert torch.equal(packed.restored()[7, 32:64], Int4Weight.of(weight).restored()[7, 32:64])


@pytest.mark.parametrize("scales", [torch.bfloat16, torch.float16])
def test_a_qat_checkpoint_becomes_int4_without_a_difference(scales: torch.dtype, floats: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(floats, tmp_path / "qat"))
    tensors, generator = load_file(folder / "model.safetensors"), torch.Generator().manual_seed(5)
    tensors |= {name: on_grid(part, scales, 8, generator) for name, part in tensors.items() if is_packed(name)}
    save_file(tensors, folder / "model.safetensors")
    target = load_target(folder, CPU, no_progress, weights="int4")
    for name in packable(load_target(folder, CPU, no_progress)):
        weight = named(target, name)
        assert isinstance(weight, Int4Weight) and torch.equal(weight.restored().bfloat16(), tensors[PREFIX + name]), (
            name
        )
    planned = target_on_meta(folder, CPU, weights="int4")
    assert {name: part.dtype for name, part in planned.named_parameters()} == {
        name: part.dtype for name, part in target.named_parameters()
    }


# --- what else may be in a packed checkpoint


@pytest.fixture(scope="module")
def int4(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tensor]:
    """With keys of a layer in floats, and its queries not."""
    folder = tmp_path_factory.mktemp("int4")
    model = random_target(KINDS, moe=True, seed=62)
    write_packed(
        folder, model, int4_config(32), as_int4(32), split=True, keep=lambda name: "0.self_attn.k_proj" in name
    )
    with torch.inference_mode():
        return folder, model(input_ids=IDS[None]).logits[0]


def test_what_is_read_together_is_of_one_kind(int4: tuple[Path, Tensor]) -> None:
    folder, expected = int4
    target = load_target(folder, CPU, no_progress)
    first, second = (target.get_submodule(f"layers.{index}.self_attn") for index in range(2))
    assert all(isinstance(weight_of(first.get_submodule(f"{name}_proj")), PlainWeight) for name in "qkv")
    assert all(isinstance(weight_of(second.get_submodule(f"{name}_proj")), Int4Weight) for name in "qk")
    torch.testing.assert_close(logits(target), expected, atol=1e-4, rtol=1e-4)


def test_packed_weights_become_floats(int4: tuple[Path, Tensor]) -> None:
    folder, expected = int4
    target = load_target(folder, CPU, no_progress, weights="bf16")
    assert all(part.dtype == torch.float32 for part in target.parameters())
    torch.testing.assert_close(logits(target), expected, atol=1e-4, rtol=1e-4)


def edited(folder: Path, to: Path, tensors: Callable[[dict[str, Tensor]], object], **config: Any) -> Path:
    shutil.copytree(folder, to)
    edit_tensors(to, tensors)
    edit_config(to, **config)
    return to


def test_floats_are_floats_whatever_their_config_says(floats: Path, tmp_path: Path) -> None:
    """Google's QAT checkpoints in bf16 have a ``quantization_config`` that names no method."""
    said = {"config_groups": {"group_0": {"weights": {"num_bits": 2, "type": "int", "symmetric": False}}}}
    folder = edited(floats, tmp_path / "x", lambda stored: None, quantization_config=said)
    load_target(folder, CPU, no_progress)


def test_scales_of_activations_stay_on_disk(int4: tuple[Path, Tensor], tmp_path: Path) -> None:
    scale = {f"{PREFIX}layers.0.self_attn.q_proj.input_scale": torch.ones(1)}
    folder = edited(int4[0], tmp_path / "x", lambda stored: stored.update(scale))
    torch.testing.assert_close(logits(load_target(folder, CPU, no_progress)), int4[1], atol=1e-4, rtol=1e-4)


def test_a_head_that_is_the_embedding_again_is_none(int4: tuple[Path, Tensor], tmp_path: Path) -> None:
    embedding, head = PREFIX + "embed_tokens.weight", "lm_head.weight"
    folder = edited(
        int4[0],
        tmp_path / "same",
        lambda stored: stored.update({head: stored[embedding].clone()}),
        tie_word_embeddings=False,
    )
    torch.testing.assert_close(logits(load_target(folder, CPU, no_progress)), int4[1], atol=1e-4, rtol=1e-4)
    assert target_on_meta(folder, CPU).config == target_on_meta(int4[0], CPU).config
    other = edited(folder, tmp_path / "other", lambda stored: stored[head].add_(1))
    with pytest.raises(WeightsFailure, match="output head of its own"):
        load_target(other, CPU, no_progress)


def test_one_scale_may_serve_a_whole_fp8_matrix(tmp_path: Path) -> None:
    model = random_target([SLIDING], moe=False, seed=63)

    def whole(name: str, weight: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        numbers, scale, meaning = as_fp8(name, weight.flatten()[None])[0], None, as_fp8(name, weight.flatten()[None])[1]
        del scale
        return {"": numbers[""].view(weight.shape), "_scale": numbers["_scale"].view(1)}, meaning.view(weight.shape)

    write_packed(tmp_path, model, FP8_CONFIG, whole, split=False)
    with torch.inference_mode():
        expected = model(input_ids=IDS[None]).logits[0]
    torch.testing.assert_close(logits(load_target(tmp_path, CPU, no_progress)), expected, atol=1e-4, rtol=1e-4)


# --- memory


class LiveBytes(TorchDispatchMode):
    """Counts the memory of tensors that operations make, as long as they live."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, tuple[StorageWeakRef, int]] = {}
        self.bytes = self.most = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for each in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(each, Tensor) and each.device.type == "cpu":
                storage = each.untyped_storage()
                if storage._cdata not in self.live or self.live[storage._cdata][0].expired():
                    self.live[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
                    self.bytes += storage.nbytes()
        if self.bytes > self.most:
            self.live = {key: held for key, held in self.live.items() if not held[0].expired()}
            self.bytes = sum(size for _, size in self.live.values())
            self.most = max(self.most, self.bytes)
        return result


@pytest.mark.parametrize("weights", ["fp8", "int4"])
def test_the_floats_are_never_all_there(weights: WeightFormat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read as a GPU reads: what is on its way, and one weight as it is packed, beside what is packed already."""
    random_target([SLIDING] * 12, moe=False, seed=64).bfloat16().save_pretrained(tmp_path)
    monkeypatch.setattr("engine.files.pinned_reader.PIECE_BYTES", 4096)
    monkeypatch.setattr("engine.files.pinned_reader.BYTES_AHEAD", 8 * 4096)
    for module in ("engine.kernels.weights.panels", "engine.loading.grid"):
        monkeypatch.setattr(f"{module}.ROWS_AT_ONCE", 32)
    monkeypatch.setattr("engine.loading.grid.SAMPLE", 8)
    monkeypatch.setattr(checkpoint, "read_tensors", lambda headers, to: read_staged(stored_tensors(headers), to))
    monkeypatch.setattr(checkpoint, "compute_dtype", lambda device: torch.bfloat16)
    counted = LiveBytes()
    with counted:
        target = load_target(tmp_path, CPU, no_progress, weights=weights)
    stored = [part.nbytes for part in load_file(tmp_path / "model.safetensors").values()]
    buffers_and_ahead = (8 + 8) * 4096
    most = bytes_of(target) + buffers_and_ahead + 2 * max(stored)
    assert counted.most < most < sum(stored)
