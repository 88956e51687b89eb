"""``python -m tests.engine.stored.write``: the checkpoints in this folder, packed by ``compressed-tensors`` itself, and
what it makes of its own numbers. Done with 0.20.0, which is not among the tests' dependencies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from compressed_tensors import ModelCompressor
from compressed_tensors.quantization import (
    QuantizationArgs,
    QuantizationConfig,
    QuantizationScheme,
    apply_quantization_config,
)
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import load_file, save_file
from torch import nn

from support.checkpoints import SLIDING, random_target

FOLDER = Path(__file__).parent
IGNORED = ["lm_head", "re:.*embed_tokens.*"]
SCHEMES = {
    "pack-quantized": QuantizationArgs(num_bits=4, type="int", strategy="group", group_size=32, symmetric=True),
    "float-quantized": QuantizationArgs(num_bits=8, type="float", strategy="channel", symmetric=True),
}


def write(name: str, args: QuantizationArgs) -> None:
    model = random_target([SLIDING], moe=False, seed=41).bfloat16()
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    config = QuantizationConfig(config_groups={"group_0": scheme}, ignore=IGNORED, format=name)
    apply_quantization_config(model, config)
    for module in model.modules():
        if isinstance(module, nn.Linear) and hasattr(module, "weight_scale"):
            groups = module.weight.float().unflatten(-1, (-1, args.group_size or module.weight.shape[-1]))
            scale, _ = calculate_qparams(groups.amin(-1), groups.amax(-1), args)
            module.weight_scale.data.copy_(scale)
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    compressor = ModelCompressor.from_pretrained_model(model, quantization_format=name)
    compressor.compress_model(model)
    model.save_pretrained(folder)
    compressor.update_config(folder)
    compressor.decompress_model(model)
    restored = {name: part.contiguous() for name, part in model.state_dict().items() if name.endswith("_proj.weight")}
    save_file(restored, folder / "expected.safetensors")


def main() -> None:
    torch.manual_seed(0)
    for name, args in SCHEMES.items():
        write(name, args)
        config = json.loads((FOLDER / name / "config.json").read_text())
        print(name, config["quantization_config"]["format"], len(load_file(FOLDER / name / "model.safetensors")))


if __name__ == "__main__":
    main()
