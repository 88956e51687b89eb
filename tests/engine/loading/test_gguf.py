"""Q4_0 files that the ``gguf`` package itself wrote, read back: the same numbers, and the logits of what it reads."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Type
from transformers import Gemma4ForConditionalGeneration

from engine.errors import WeightsFailure
from engine.files.gguf import read_gguf
from engine.files.gguf_blocks import restored
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.kinds import weight_of
from engine.loading.checkpoint import load_target
from engine.loading.stored_format import StoredFormat, stored_format
from engine.models.gemma4.gguf_names import gguf_name
from support.checkpoints import FULL, SLIDING, random_target
from support.packed_checkpoints import PREFIX, is_packed
from tests.engine.conftest import CPU, no_progress
from tests.engine.loading.test_packed_checkpoints import IDS, logits

VOCABULARY = 3000


def write_gguf(path: Path, model: Gemma4ForConditionalGeneration, types: Callable[[str], Type]) -> None:
    """As llama.cpp's converter does, with a vocabulary and what is computed from the config. The model becomes what the
    file stands for."""
    writer = gguf.GGUFWriter(path, "gemma4")
    writer.add_block_count(2)
    writer.add_token_list([f"token {number}" for number in range(VOCABULARY)])
    writer.add_token_scores([0.5] * VOCABULARY)
    writer.add_tensor("rope_freqs.weight", np.ones(16, np.float32))
    for name, part in model.state_dict().items():
        if not name.startswith(PREFIX):
            continue
        kind = types(name) if is_packed(name) or "embed_tokens" in name else Type.F32
        stored = gguf.quantize(part.numpy(), kind)
        writer.add_tensor(gguf_name(name.removeprefix(PREFIX)), stored, raw_dtype=kind)
        part.copy_(torch.from_numpy(gguf.dequantize(stored, kind).copy()))
        if "layers.1.self_attn.k_proj" in name:
            writer.add_tensor("blk.1.attn_v.weight", stored, raw_dtype=kind)  # values that are the keys
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def q4_0(name: str) -> Type:
    return Type.Q8_0 if "embed_tokens" in name else Type.Q4_0


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Gemma4ForConditionalGeneration]:
    folder = tmp_path_factory.mktemp("gguf")
    model = random_target([SLIDING, FULL], moe=True, seed=31)
    model.save_pretrained(folder)
    (folder / "model.safetensors").unlink()
    write_gguf(folder / "gemma-q4_0.gguf", model, q4_0)
    return folder, model


@torch.inference_mode()
def test_a_q4_0_file_is_read_back(written: tuple[Path, Gemma4ForConditionalGeneration]) -> None:
    folder, model = written
    assert stored_format(folder) == StoredFormat("int4", 32, "F16")
    target = load_target(folder, CPU, no_progress)
    expected = model.state_dict()
    down = weight_of(target.get_submodule("layers.0.experts"), "down_proj")
    assert isinstance(down, Int4Weight) and down.scales is not None and down.scales.dtype == torch.float16
    assert torch.equal(down.restored(), expected[PREFIX + "layers.0.experts.down_proj"])
    assert torch.equal(target.embed_tokens.weight, expected[PREFIX + "embed_tokens.weight"])
    torch.testing.assert_close(logits(target), model(input_ids=IDS[None]).logits[0], atol=1e-4, rtol=1e-4)


def test_embeddings_of_six_bits_are_restored() -> None:
    """Google's file has one, of a kind that the package reads and does not write."""
    blocks = np.random.default_rng(0).integers(0, 256, (5, 3 * 210), dtype=np.uint8)
    blocks.reshape(5, 3, 210)[..., 208:] = np.full((5, 3, 1), 0.01, np.float16).view(np.uint8)
    expected = torch.from_numpy(gguf.dequantize(blocks, Type.Q6_K))
    assert torch.equal(restored(torch.from_numpy(blocks).flatten(), (5, 768), "Q6_K", torch.float32), expected)


def test_floats_beside_a_gguf_file_are_read_unless_int4_is_asked_for(
    written: tuple[Path, Gemma4ForConditionalGeneration], tmp_path: Path
) -> None:
    folder, _ = written
    random_target([SLIDING, FULL], moe=True, seed=32).save_pretrained(tmp_path)
    shutil.copy(folder / "gemma-q4_0.gguf", tmp_path)
    assert stored_format(tmp_path) == StoredFormat("bf16")
    packed, alone = load_target(tmp_path, CPU, no_progress, weights="int4"), load_target(folder, CPU, no_progress)
    assert all(torch.equal(part, other) for part, other in zip(packed.parameters(), alone.parameters(), strict=True))


def test_other_gguf_files_are_refused_by_name(tmp_path: Path) -> None:
    model = random_target([SLIDING], moe=False, seed=33)
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    write_gguf(tmp_path / "model.gguf", model, lambda name: Type.Q5_1 if "down_proj" in name else Type.Q4_0)
    with pytest.raises(WeightsFailure, match=r"model\.gguf is Q5_1 \(in blk\.0\.ffn_down\.weight\)") as caught:
        stored_format(tmp_path)
    assert "llama.cpp" in caught.value.hint
    (tmp_path / "config.json").unlink()
    with pytest.raises(WeightsFailure, match=r"without config\.json") as caught:
        load_target(tmp_path, CPU, no_progress)
    assert "tokenizer.json" in caught.value.hint


def test_a_damaged_gguf_file_is_refused(written: tuple[Path, Gemma4ForConditionalGeneration], tmp_path: Path) -> None:
    content = (written[0] / "gemma-q4_0.gguf").read_bytes()
    headers = read_gguf(written[0] / "gemma-q4_0.gguf").tensors
    first = min(header.offset for header in headers.values())
    path = tmp_path / "gemma.gguf"
    for length in [*range(0, first, first // 60), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(WeightsFailure, match="damaged or incomplete"):
            read_gguf(path)
