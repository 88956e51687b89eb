"""GGUF files of Llama and Qwen3 that the ``gguf`` package wrote: read back as they are, with a config beside them and,
of Llama, alone; those of others are refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Type
from transformers import PreTrainedModel

from engine.errors import WeightsFailure
from engine.hub.packaged import folder_of
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.kinds import bytes_of, weight_of
from engine.loading.checkpoint import load_target, read_target_config
from engine.loading.stored_format import StoredFormat, stored_format
from engine.models.pre_norm.names import gguf_name
from engine.tokenization.tokenizer import ChatTokenizer
from support.checkpoints import VOCAB_SIZE
from tests.engine.conftest import CPU, no_progress
from tests.engine.edited import edit_config
from tests.engine.loading.test_packed_checkpoints import IDS, logits
from tests.engine.models.pre_norm import random_model

WIDTH = 128
"""Of hidden states: a multiple of a block."""
BYTES = [chr(0x21 + number) if number < 94 else chr(0x100 + number - 94) for number in range(162)]
TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *BYTES, "ab", "<tool>"]
FIELDS: dict[str, Any] = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.chat_template": "{% for each in messages %}{{ each.content }}{% endfor %}",
}


def write(path: Path, model: PreTrainedModel, kind: Type, tensors: tuple[str, ...] = (), **fields: Any) -> None:
    """As llama.cpp's converter does. The model becomes what the file stands for. ``tensors`` are further ones."""
    config, said = model.config, FIELDS | {name.replace("__", "."): value for name, value in fields.items()}
    architecture = said["general.architecture"]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(4096)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    for name, value in said.items():
        if name != "general.architecture":
            writer.add_uint32(name, value) if isinstance(value, int) else writer.add_string(name, value)
    filler = [f"<unused{number}>" for number in range(VOCAB_SIZE - len(TOKENS))]
    writer.add_token_list([*TOKENS, *filler])
    writer.add_token_types([3] * 3 + [1] * len(BYTES) + [1, 4] + [5] * len(filler))
    writer.add_token_merges(["a b"])
    for name in tensors:
        writer.add_tensor(name, np.ones(16, np.float32))
    for name, part in model.state_dict().items():
        if config.tie_word_embeddings and name.startswith("lm_head"):
            continue
        type_ = Type.F32 if part.ndim == 1 else Type.Q8_0 if "embed_tokens" in name else kind
        rows = part.numpy()
        interleaved = architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight"))
        if interleaved:  # the halves of a head take turns there
            rows = rows.reshape(-1, 2, config.head_dim // 2, WIDTH).swapaxes(1, 2).reshape(rows.shape)
        stored = gguf.quantize(np.ascontiguousarray(rows), type_)
        writer.add_tensor(gguf_name(name.removeprefix("model.")), stored, raw_dtype=type_)
        rows = gguf.dequantize(stored, type_)
        if interleaved:
            rows = rows.reshape(-1, config.head_dim // 2, 2, WIDTH).swapaxes(1, 2).reshape(rows.shape)
        part.copy_(torch.from_numpy(rows.copy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def a_model(family: str, **changes: Any) -> PreTrainedModel:
    return random_model(family, 9, hidden_size=WIDTH, intermediate_size=160, num_hidden_layers=2, **changes)


@torch.inference_mode()
@pytest.mark.parametrize("kind", [Type.Q4_0, Type.Q4_1, Type.Q8_0, Type.F16], ids=lambda kind: kind.name)
@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_a_file_beside_its_config_is_read_back(family: str, kind: Type, tmp_path: Path) -> None:
    model = a_model(family, tie_word_embeddings=kind == Type.Q4_0)
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    write(tmp_path / "model.gguf", model, kind, general__architecture=family)
    packed = kind == Type.Q4_0
    blocks = "Q4_1" if kind == Type.Q4_1 else "Q8_0"  # the embedding, at least
    plain = StoredFormat("bf16", blocks=blocks, in_levels=kind == Type.Q4_1)
    said = StoredFormat("int4", 32, "F16") if packed else plain
    assert stored_format(tmp_path) == said
    target = load_target(tmp_path, CPU, no_progress)
    storages = {part.untyped_storage().data_ptr(): part.untyped_storage().nbytes() for part in target.parameters()}
    assert sum(storages.values()) == bytes_of(target), "norms keep nothing that was read with them"
    held = weight_of(target.get_submodule("layers.1.self_attn.q_proj"))
    assert isinstance(held, Int4Weight) == packed
    assert torch.equal(held.restored(), model.state_dict()["model.layers.1.self_attn.q_proj.weight"])
    assert torch.equal(target.embed_tokens.weight, model.state_dict()["model.embed_tokens.weight"])
    torch.testing.assert_close(logits(target), model(input_ids=IDS[None]).logits[0], atol=1e-4, rtol=1e-4)
    edit_config(tmp_path, model_type="qwen3" if family == "llama" else "llama")
    with pytest.raises(WeightsFailure, match=rf"architecture '{family}'; config\.json beside it describes"):
        load_target(tmp_path, CPU, no_progress)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@torch.inference_mode()
@pytest.mark.parametrize("tied", [True, False])
def test_a_llama_s_file_alone_is_a_checkpoint(tied: bool, tmp_path: Path, cache: Path) -> None:
    model = a_model("llama", tie_word_embeddings=tied)
    write(tmp_path / "model.gguf", model, Type.Q4_1)
    folder = folder_of(tmp_path / "model.gguf")
    assert folder == folder_of(tmp_path / "model.gguf") and folder.is_relative_to(cache)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], "nothing half made is left"
    target, config = load_target(folder, CPU, no_progress), read_target_config(folder)
    assert (config.stop_token_ids, config.max_context, config.vocab_size) == ((2,), 4096, VOCAB_SIZE)
    torch.testing.assert_close(logits(target), model(input_ids=IDS[None]).logits[0], atol=1e-4, rtol=1e-4)
    tokenizer = ChatTokenizer(folder)
    ids = tokenizer.raw_prompt("ab12<|im_end|><tool>").ids
    assert [tokenizer.piece(token) for token in ids] == ["ab", "1", "2", "<|im_end|>", "<tool>"]
    assert 2 in tokenizer.special_ids and ids[-1] not in tokenizer.special_ids
    write(tmp_path / "model.gguf", model, Type.Q8_0)
    assert folder_of(tmp_path / "model.gguf") != folder, "another file"


@pytest.mark.parametrize(
    ("fields", "tensors", "word"),
    [
        ({"general__architecture": "mamba"}, (), "'mamba'; of files without config.json the engine reads llama"),
        ({"general__architecture": "qwen3"}, (), "'qwen3'"),
        ({"tokenizer__ggml__model": "llama"}, (), "tokenizer of the kind 'llama'"),
        ({"tokenizer__ggml__pre": "tekken"}, (), "splits words as 'tekken' does"),
        ({"llama__rope__scaling__type": "yarn"}, (), "scales its rotary frequencies"),
        ({}, ("rope_freqs.weight",), "scales its rotary frequencies"),
    ],
)
def test_files_that_say_too_little_or_something_else_are_refused(
    fields: dict[str, Any], tensors: tuple[str, ...], word: str, tmp_path: Path, cache: Path
) -> None:
    write(tmp_path / "model.gguf", a_model("llama"), Type.Q4_1, tensors, **fields)
    with pytest.raises(WeightsFailure) as caught:
        folder_of(tmp_path / "model.gguf")
    assert word in str(caught.value) and caught.value.hint
    assert not cache.exists() or not list((cache / "dflash-chat" / "models").iterdir())


def test_files_that_are_damaged_are_refused(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "whole.gguf", a_model("llama"), Type.Q4_1)
    content, path = (tmp_path / "whole.gguf").read_bytes(), tmp_path / "model.gguf"
    for length in [*range(0, 12_000, 97), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(WeightsFailure):
            folder_of(path)
    path.write_bytes(content[:4] + (9).to_bytes(4, "little") + content[8:])
    with pytest.raises(WeightsFailure, match="no GGUF file of version 2 or 3"):
        folder_of(path)
    assert json.loads((folder_of(tmp_path / "whole.gguf") / "config.json").read_text())["hidden_size"] == WIDTH


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "model.gguf", a_model("llama"), Type.Q4_1)
    cache.write_text("a file in the folder's place")
    with pytest.raises(WeightsFailure, match=r"can't be written") as caught:
        folder_of(tmp_path / "model.gguf")
    assert "XDG_CACHE_HOME" in caught.value.hint
