"""What is wrong with a packed checkpoint, and formats that the engine doesn't read: one sentence each, before any
weight is read (a scale that is no number: before it is used)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.errors import UsageFailure, WeightsFailure
from engine.loading.checkpoint import load_target
from engine.loading.stored_format import stored_format
from support.checkpoints import FULL, SLIDING, random_target
from support.packed_checkpoints import FP8_CONFIG, PREFIX, as_fp8, as_int4, int4_config, write_packed
from tests.engine.conftest import CPU, no_progress
from tests.engine.edited import Tensors, edit_tensors

Q, K = (f"{PREFIX}layers.0.self_attn.{name}_proj.weight" for name in "qk")
DOWN = f"{PREFIX}layers.0.experts.down_proj"
Edit = Callable[[Tensors], object]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    model = random_target([SLIDING, FULL], moe=True, seed=51)
    model.save_pretrained(folder / "bf16")
    write_packed(folder / "int4", model, int4_config(32), as_int4(32), split=False)
    write_packed(folder / "fp8", model, FP8_CONFIG, as_fp8, split=True)
    return folder


def say(folder: Path, **fields: Any) -> None:
    """Changes what the config says of its quantisation."""
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {**config.get("quantization_config", {}), **fields}
    (folder / "config.json").write_text(json.dumps(config))


def moved(name: str, other: str) -> Edit:
    return lambda tensors: tensors.update({other: tensors.pop(name)})


def changed(name: str, how: Callable[[Tensor], Tensor]) -> Edit:
    return lambda tensors: tensors.update({name: how(tensors[name])})


def added(**tensors: Tensor) -> Edit:
    return lambda those: those.update({name.replace("__", "."): part for name, part in tensors.items()})


def with_value(value: float) -> Callable[[Tensor], Tensor]:
    def change(tensor: Tensor) -> Tensor:
        tensor[..., 1, 0] = value
        return tensor

    return change


BAD: dict[str, tuple[str, Edit, str]] = {
    "no scales": ("int4", lambda those: those.pop(Q + "_scale"), f"lacks the scales of {Q}"),
    "no numbers": ("int4", lambda those: those.pop(Q + "_packed"), f"has the scales of {Q}, but not its numbers"),
    "scales for floats": (
        "bf16",
        added(**{Q + "_scale": torch.ones(64, 1)}),
        f"has scales for {Q}, which is not packed but F32",
    ),
    "two formats": ("int4", added(**{Q: torch.ones(64, 64)}), f"names {Q} in two formats"),
    "an expert in floats": (
        "fp8",
        lambda those: [
            those.update({f"{DOWN.replace('down_proj', '3.down_proj.weight')}": torch.ones(64, 32)}),
            those.pop(f"{DOWN.replace('down_proj', '3.down_proj.weight')}_scale"),
        ],
        "are parts of one weight, and stored in different formats",
    ),
    "zero points": (
        "int4",
        added(**{Q + "_zero_point": torch.zeros(8, 2, dtype=torch.int32)}),
        f"{Q} has zero points, which a symmetric weight has not",
    ),
    "another group than the config's": (
        "int4",
        changed(Q + "_scale", lambda scale: scale[:, :1]),
        f"scales of {Q} are for groups of 64 numbers, the config says 32",
    ),
    "truncated pack": (
        "int4",
        changed(Q + "_packed", lambda packed: packed[:, :-1]),
        rf"{Q} is packed as I32\[64, 7\]",
    ),
    "scales in int32": (
        "int4",
        changed(Q + "_scale", Tensor.int),
        f"The scales of {Q} are I32.*none of BF16, F16, F32",
    ),
    "scales of blocks and of rows": (
        "fp8",
        added(**{Q + "_scale_inv": torch.ones(1, 1)}),
        rf"{Q} is F8_E4M3\[64, 64\] and has scales of blocks",
    ),
    "NaN": (
        "int4",
        changed(DOWN + "_scale", with_value(float("nan"))),
        "A scale of .*down_proj is not a finite number",
    ),
    "huge": ("int4", changed(DOWN + "_scale", with_value(-(2.0**32))), r"A scale of .*down_proj is 2\^32 or more"),
    "0": ("int4", changed(DOWN + "_scale", with_value(0.0)), "A scale of .*down_proj is 0, but the numbers"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_has_a_sentence(what: str, healthy: Path, tmp_path: Path) -> None:
    form, change, sentence = BAD[what]
    folder = Path(shutil.copytree(healthy / form, tmp_path / form))
    edit_tensors(folder, change)
    with pytest.raises(WeightsFailure, match=sentence) as caught:
        load_target(folder, CPU, no_progress)
    assert caught.value.hint


def test_a_scale_of_0_may_scale_zeros(healthy: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(healthy / "int4", tmp_path / "int4"))

    def clear(tensors: Tensors) -> None:
        eights = torch.tensor(0x88888888 - 2**32, dtype=torch.int32)
        tensors[Q + "_packed"][1, :4] = eights
        tensors[Q + "_scale"][1, 0] = 0

    edit_tensors(folder, clear)
    load_target(folder, CPU, no_progress)


REFUSED: dict[str, tuple[str, Edit, dict[str, Any], str]] = {
    "NVFP4, compressed-tensors": (
        "int4",
        added(**{Q + "_global_scale": torch.ones(1)}),
        {"format": "nvfp4-pack-quantized"},
        "NVFP4 \\(compressed-tensors\\)",
    ),
    "MXFP4": (
        "bf16",
        lambda those: those.update(
            {Q + "_packed": those.pop(Q)[:, :32].byte(), Q + "_scale": torch.ones(64, 2, dtype=torch.uint8)}
        ),
        {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"},
        "MXFP4",
    ),
    "GPTQ": ("bf16", moved(Q, Q.replace(".weight", ".qweight")), {"quant_method": "gptq"}, "GPTQ"),
    "AWQ": ("bf16", moved(Q, Q.replace(".weight", ".qweight")), {"quant_method": "awq"}, "AWQ"),
    "bitsandbytes": ("bf16", added(**{Q + ".absmax": torch.ones(4)}), {"quant_method": "bitsandbytes"}, "bitsandbytes"),
    "MLX": ("bf16", changed(Q, lambda part: part[:, :8].to(torch.uint32)), {"group_size": 64, "bits": 4}, "MLX"),
    "INT8": ("bf16", changed(Q, lambda part: part.to(torch.int8)), {"format": "int-quantized"}, "INT8"),
    "asymmetric": (
        "int4",
        added(**{Q + "_zero_point": torch.zeros(8, 2, dtype=torch.int32)}),
        {"config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "symmetric": False}}}},
        "INT4 with zero points \\(asymmetric\\)",
    ),
    "columns in another order": (
        "int4",
        added(**{Q + "_g_idx": torch.zeros(64, dtype=torch.int32)}),
        {},
        "activation ordering",
    ),
    "rotated": ("int4", added(), {"transform_config": {"config_groups": {"u": {}}}}, "rotated"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_other_formats_are_refused_by_name(what: str, healthy: Path, tmp_path: Path) -> None:
    form, change, said, name = REFUSED[what]
    folder = Path(shutil.copytree(healthy / form, tmp_path / form))
    edit_tensors(folder, change)
    say(folder, **said)
    told: list[object] = []
    with pytest.raises(WeightsFailure, match=f"This checkpoint is .*{name}.*, which the engine doesn't") as caught:
        load_target(folder, CPU, lambda *progress: told.append(progress))
    assert "INT4 in groups of 32, 64 or 128" in caught.value.hint and told == []


def test_what_works_instead_is_named_by_what_fits(healthy: Path, tmp_path: Path) -> None:
    """By the shape of a published model."""
    folder = Path(shutil.copytree(healthy / "bf16", tmp_path / "bf16"))
    config = json.loads((folder / "config.json").read_text())
    config["text_config"] |= {"hidden_size": 2816, "num_hidden_layers": 30}
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "gptq"}}))
    edit_tensors(folder, moved(Q, Q.replace(".weight", ".qweight")))

    def hint(room: int | None) -> str:
        with pytest.raises(WeightsFailure) as caught:
            stored_format(folder, room)
        return caught.value.hint

    assert "FP8-Dynamic" in hint(None) and "AWQ-4bit" in hint(None)
    assert "FP8-Dynamic" not in hint(24 * 10**9) and "AWQ-4bit" in hint(24 * 10**9)
    assert "a smaller model would" in hint(8 * 10**9)


def test_groups_that_do_not_divide_a_row_are_named(healthy: Path, tmp_path: Path) -> None:
    """As of 128 numbers in the experts' rows of 704."""
    folder = Path(shutil.copytree(healthy / "int4", tmp_path / "int4"))
    say(folder, config_groups={"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 48}}})
    edit_tensors(folder, changed(Q + "_scale", lambda scale: torch.cat((scale, scale[:, :1]), dim=-1)))
    with pytest.raises(
        WeightsFailure, match="64 numbers and 3 scales: no whole groups; the config's 48 do not divide 64"
    ):
        load_target(folder, CPU, no_progress)


def test_packed_weights_are_not_packed_otherwise(healthy: Path) -> None:
    with pytest.raises(UsageFailure, match="weights are FP8; rounding them again to INT4 would only lose") as caught:
        load_target(healthy / "fp8", CPU, no_progress, weights="int4")
    assert caught.value.hint
