"""Qwen3.5 as others publish it in few bits: what is read stands for what its twin in floats is; other formats are
refused by name. What of a file a chat doesn't need is said once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import engine
from engine.commands import MTP
from engine.events import LoadProgress
from engine.kernels.weights.kinds import weight_of
from engine.loading.checkpoint import load_target
from engine.models.packed import packed_weights
from engine.models.target import TargetModel
from support.packed_checkpoints import FP8_CONFIG, as_fp8, as_int4, int4_config, of_experts
from tests.engine.conftest import CPU, no_progress
from tests.engine.edited import edit_config
from tests.engine.models.qwen3_5 import ATTENDS, RECURS, save, saved, write_target

Tensors = dict[str, Tensor]
Pack = Callable[[str, Tensor], tuple[Tensors, Tensor]]
FLOATS = ("in_proj_a.weight", "in_proj_b.weight", "mlp.gate.weight", "shared_expert_gate.weight", "conv1d.weight")
"""What all publishers leave in floats, besides norms, head and embedding."""


def is_packed(name: str, tensor: Tensor) -> bool:
    return name.startswith("model.language_model.layers.") and tensor.ndim >= 2 and not name.endswith(FLOATS)


def write_both(folder: Path, experts: bool, pack: Pack, said: dict[str, Any]) -> None:
    """A checkpoint in few bits, and its twin that holds what those stand for in floats."""
    layers = {"num_hidden_layers": 2, "layer_types": [RECURS, ATTENDS]} | (
        {"moe_intermediate_size": 64} if experts else {}
    )
    few: Tensors = {}
    floats: Tensors = {}
    for part in ("few", "floats"):
        write_target(folder / part, 6, experts=experts, drafts=True, **layers)
    for name, tensor in saved(folder / "floats").items():
        if not is_packed(name, tensor):
            few[name] = floats[name] = tensor
            continue
        meant = []
        for piece, part in (of_experts(name, tensor) if tensor.ndim == 3 else {name: tensor}).items():
            tensors, stands_for = pack(piece, part)
            few |= {piece + ending: each.contiguous() for ending, each in tensors.items()}
            meant.append(stands_for)
        floats[name] = torch.cat(meant).view_as(tensor)
    save(folder / "few", few)
    save(folder / "floats", floats)
    edit_config(folder / "few", quantization_config=said)


def meaning(model: TargetModel) -> Tensors:
    """What each matrix of the layers stands for, by the name of its first tensor."""
    found = {}
    with torch.device("meta"):
        names = [name for name, _ in model.config.build().layers.named_parameters()]
    for name in names:
        path, _, last = name.rpartition(".")
        if last.endswith(("weight", "proj")) and "norm" not in path and not name.endswith("conv1d.weight"):
            found[name] = weight_of(model.layers.get_submodule(path), last).restored()
    return found


BLOCK = 24, 40
"""Of which neither divides all matrices, as 128 does not those of all that is published."""
BLOCKS_CONFIG = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": list(BLOCK)}


def as_blocks(name: str, weight: Tensor) -> tuple[Tensors, Tensor]:
    """E4M3 with a scale for each block, as Qwen and DeepSeek publish it."""
    rows, columns = (torch.arange(size) // step for size, step in zip(weight.shape, BLOCK, strict=True))
    scales = torch.zeros(int(rows[-1]) + 1, int(columns[-1]) + 1)
    for row in range(len(scales)):
        for column in range(scales.shape[1]):
            scales[row, column] = weight[rows == row][:, columns == column].abs().max() / 448
    each = scales[rows][:, columns]
    numbers = (weight / each).to(torch.float8_e4m3fn)
    return {"": numbers, "_scale_inv": scales}, numbers.float() * each


@pytest.mark.parametrize("experts", [False, True], ids=["dense", "experts"])
@pytest.mark.parametrize(
    ("pack", "said"),
    [(as_int4(32), int4_config(32)), (as_fp8, FP8_CONFIG), (as_blocks, BLOCKS_CONFIG)],
    ids=["int4", "fp8", "fp8-in-blocks"],
)
def test_what_others_packed_stands_for_the_same_floats(
    experts: bool, pack: Pack, said: dict[str, Any], tmp_path: Path
) -> None:
    """By compressed-tensors, or in blocks, experts each by itself; queries and keys are laid otherwise than in the
    file. What has a scale for each block becomes floats."""
    write_both(tmp_path, experts, pack, said)
    few, floats = (meaning(load_target(tmp_path / part, CPU, no_progress)) for part in ("few", "floats"))
    held = len(list(packed_weights(load_target(tmp_path / "few", CPU, no_progress))))
    assert held == 0 if said is BLOCKS_CONFIG else held >= 6
    assert few.keys() == floats.keys() and len(few) >= 10
    for name, matrix in floats.items():
        assert torch.equal(few[name].float(), matrix), name


def test_what_is_left_out_is_said_once(tmp_path: Path) -> None:
    """Unless it drafts."""
    write_target(tmp_path, drafts=True, num_hidden_layers=2, layer_types=[RECURS, ATTENDS])
    for drafter, parts in (("none", ("MTP", "pictures")), (MTP, ("pictures",))):
        said: list[LoadProgress] = []
        engine.load(str(tmp_path), said.append, drafter=drafter, device="cpu", time_rounds=False).close()
        (told,) = [each for each in said if "left out" in each.phase]
        assert told.remark and [part for part in ("MTP", "pictures") if part in told.phase] == list(parts)
