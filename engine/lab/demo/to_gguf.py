"""Writes the bundled pair as two files for llama.cpp: ``python -m engine.lab.demo.to_gguf FOLDER``. Needs ``gguf``.

The names of keys and tensors are llama.cpp's, for its architectures ``gemma4`` and ``dflash``."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import torch
from safetensors.torch import load_file

from ...hub.pairs import BUNDLED_PAIR
from ...models.gemma4.gguf_names import gguf_name
from ..training.to_gguf import Json, Tensors, common_keys, drafter_keys, drafter_tensors, write

UNROTATED = 1e30
"""A divisor of a frequency that leaves its dimensions as they are."""

CONTROL = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>", "<|tool_response>")
"""Tokens that never show as text. The other special ones do: the server's parser looks for channels in the text."""
END_OF_TURN = "<turn|>"


class PairFiles(NamedTuple):
    target: Path
    drafter: Path


def convert_pair(folder: Path) -> PairFiles:
    """Writes ``target.gguf`` and ``drafter.gguf``: 19 MB, in a second."""
    target, drafter = BUNDLED_PAIR / "target", BUNDLED_PAIR / "drafter"
    about = _json(BUNDLED_PAIR / "about.json")
    config = _json(target / "config.json")["text_config"]
    folder.mkdir(parents=True, exist_ok=True)
    files = PairFiles(folder / "target.gguf", folder / "drafter.gguf")
    write(
        files.target,
        "gemma4",
        about["name"],
        target_keys(config),
        target_tensors(target, config),
        partial(_add_tokenizer, folder=target),
    )
    keys = drafter_keys(_json(drafter / "config.json"), config["hidden_size"])
    write(
        files.drafter,
        "dflash",
        about["name"] + "-DFlash",
        keys,
        drafter_tensors(drafter),
        partial(_add_tokenizer, folder=target),
    )
    return files


def target_keys(config: Json) -> Json:
    """The metadata that llama.cpp needs of a Gemma 4, by keys without the architecture's name in front."""
    sliding = [kind == "sliding_attention" for kind in config["layer_types"]]
    heads = config["num_key_value_heads"], config["num_global_key_value_heads"]
    ropes = config["rope_parameters"]
    return {
        **common_keys(config),
        "attention.head_count_kv": [heads[0] if slides else heads[1] for slides in sliding],
        "attention.key_length": config["global_head_dim"],
        "attention.value_length": config["global_head_dim"],
        "attention.key_length_swa": config["head_dim"],
        "attention.value_length_swa": config["head_dim"],
        "attention.sliding_window": config["sliding_window"],
        "attention.sliding_window_pattern": sliding,
        "attention.shared_kv_layers": config["num_kv_shared_layers"],
        "embedding_length_per_layer_input": config["hidden_size_per_layer_input"],
        "expert_count": config["num_experts"],
        "expert_used_count": config["top_k_experts"],
        "expert_feed_forward_length": config["moe_intermediate_size"],
        "final_logit_softcapping": config["final_logit_softcapping"],
        "rope.dimension_count": config["global_head_dim"],
        "rope.dimension_count_swa": config["head_dim"],
        "rope.freq_base": float(ropes["full_attention"]["rope_theta"]),
        "rope.freq_base_swa": float(ropes["sliding_attention"]["rope_theta"]),
    }


def target_tensors(folder: Path, config: Json) -> Tensors:
    for name, tensor in load_file(folder / "model.safetensors").items():
        yield gguf_name(name.removeprefix("model.language_model.")), tensor
    # To rotate only part of a wide head, the other frequencies are divided away.
    half = config["global_head_dim"] // 2
    rotated = int(half * config["rope_parameters"]["full_attention"]["partial_rotary_factor"])
    yield "rope_freqs.weight", torch.tensor([1.0] * rotated + [UNROTATED] * (half - rotated))


def _add_tokenizer(writer: gguf.GGUFWriter, folder: Path) -> None:
    tokenizer = _json(folder / "tokenizer.json")
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    added = {token["content"] for token in tokenizer["added_tokens"]}
    writer.add_tokenizer_model("gemma4")
    writer.add_token_list(tokens)
    writer.add_token_scores([-1000.0] * len(tokens))
    writer.add_token_types([_token_type(token, added) for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    named = _json(folder / "tokenizer_config.json")
    for kind in ("bos", "eos", "unk", "pad", "mask"):
        writer.add_uint32(f"tokenizer.ggml.{_ID_NAMES.get(kind, kind)}_token_id", vocabulary[named[f"{kind}_token"]])
    writer.add_eot_token_id(vocabulary[END_OF_TURN])
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template((folder / "chat_template.jinja").read_text("utf-8"))


_ID_NAMES = {"unk": "unknown", "pad": "padding"}


def _token_type(token: str, added: set[str]) -> gguf.TokenType:
    if token in CONTROL:
        return gguf.TokenType.CONTROL
    if token in added:
        return gguf.TokenType.USER_DEFINED
    if token.startswith("<0x") and len(token) == len("<0x00>"):
        return gguf.TokenType.BYTE
    return gguf.TokenType.NORMAL


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


if __name__ == "__main__":
    for file in convert_pair(Path(sys.argv[1])):
        print(f"{file}  {file.stat().st_size / 1e6:.1f} MB")
