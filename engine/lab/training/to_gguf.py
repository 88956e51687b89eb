"""Writes a drafter as a file for llama.cpp: ``python -m engine.lab.training.to_gguf smollm2 drafter.gguf``. Needs the
package ``gguf``, and a target whose folder holds a GGUF file: the drafter's tokens are that file's.

The names of keys and tensors are llama.cpp's, for its architecture ``dflash``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gguf
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from ...files.gguf import gguf_file
from ...hub.fetching import Fetching
from ...hub.pairs import find_pair
from ...models.dflash.config import DFlashConfig
from ...models.pre_norm.names import gguf_name

Json = dict[str, Any]
Tensors = Iterator[tuple[str, torch.Tensor]]

DRAFTER_TOP = {
    "fc.weight": "fc.weight",
    "hidden_norm.weight": "enc.output_norm.weight",
    "norm.weight": "output_norm.weight",
}


def convert_drafter(folder: Path, name: str, target: Path, path: Path) -> None:
    """Writes the drafter in ``folder`` to ``path``, with the tokens of its target's file ``target``."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    keys = drafter_keys(config, config["hidden_size"])
    tokenizer = partial(_copy_tokenizer, source=target, mask=config["dflash_config"]["mask_token_id"])
    write(path, "dflash", name, keys, drafter_tensors(folder), tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("file", type=Path)
    parser.add_argument("drafter", nargs="?", help="a folder; default: the target's own")
    wanted = parser.parse_args()
    folders = find_pair(wanted.target, wanted.drafter, Fetching(offline=True))
    source = gguf_file(folders.target)
    if folders.drafter is None or source is None:
        parser.error("this target has no drafter" if folders.drafter is None else "this target is no GGUF file")
    convert_drafter(folders.drafter, f"{folders.name}-DFlash", source, wanted.file)


def _copy_tokenizer(writer: gguf.GGUFWriter, source: Path, mask: int) -> None:
    """Copies all that a file says of its tokens, and adds which one stands for what is to be drafted."""
    writer.add_mask_token_id(mask)
    for key, field in gguf.GGUFReader(source).fields.items():
        if key.startswith("tokenizer.") and key != gguf.Keys.Tokenizer.MASK_ID:
            kind, *of = field.types
            writer.add_key_value(key, field.contents(), kind, of[0] if of else None)


def drafter_keys(config: Json, hidden_size: int) -> Json:
    """The metadata that llama.cpp needs of a DFlash drafter, by keys without the architecture's name in front."""
    dflash = config["dflash_config"]
    kinds = config.get("layer_types") or ["full_attention"] * config["num_hidden_layers"]
    sliding = [kind == "sliding_attention" for kind in kinds]
    fields: Json = {
        **common_keys(config),
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.key_length": config["head_dim"],
        "attention.value_length": config["head_dim"],
        "rope.dimension_count": config["head_dim"],
        "rope.freq_base": float(config["rope_theta"]),
        "embedding_scale": dflash["input_embedding_scale"],
        "block_size": dflash["block_size"],
        # llama.cpp counts the states between layers: the state behind layer n is the input of layer n + 1.
        "target_layers": [layer + 1 for layer in dflash["target_layer_ids"]],
        "target_hidden_size": hidden_size,
    }
    if any(sliding):
        fields["attention.sliding_window"] = config["sliding_window"]
        fields["attention.sliding_window_pattern"] = sliding
    if any(layer.causal for layer in DFlashConfig.from_json(config).layers):
        # llama.cpp has one switch for all layers. Behind a row of a block there are masks, which tell a layer that was
        # trained to see them little, and mislead one that wasn't: 5.4 tokens a round with the switch on, 2.8 off, 6.0
        # by the engine itself (the bundled pair, 36 held-out questions).
        fields["attention.causal"] = True
    if "final_logit_softcapping" in dflash:
        fields["final_logit_softcapping"] = dflash["final_logit_softcapping"]
    return fields


def drafter_tensors(folder: Path) -> Tensors:
    for name, tensor in load_file(folder / "model.safetensors").items():
        yield gguf_name(name, DRAFTER_TOP), tensor


def common_keys(config: Json) -> Json:
    return {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "vocab_size": config["vocab_size"],
    }


def write(
    path: Path, architecture: str, name: str, keys: Json, tensors: Tensors, tokenizer: Callable[[gguf.GGUFWriter], None]
) -> None:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(name)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    for key, value in keys.items():
        _add(writer, f"{architecture}.{key}", value)
    tokenizer(writer)
    for tensor_name, tensor in tensors:
        data, kind = _as_stored(tensor_name, tensor)
        writer.add_tensor(tensor_name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case list():
            writer.add_array(key, value)
        case _:
            raise TypeError(f"{key}: {value!r}")


def _as_stored(name: str, tensor: torch.Tensor) -> tuple[NDArray[Any], gguf.GGMLQuantizationType]:
    """A tensor in the type in which it is stored: matrices stay bf16, as bytes; what llama.cpp adds or multiplies by
    element, and routers, must be fp32."""
    if tensor.ndim == 1 or "ffn_gate_inp" in name:
        return tensor.float().numpy(), gguf.GGMLQuantizationType.F32
    return tensor.contiguous().view(torch.uint8).numpy(), gguf.GGMLQuantizationType.BF16


if __name__ == "__main__":
    main()
