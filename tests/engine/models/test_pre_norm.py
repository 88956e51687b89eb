"""Llama, Qwen3 and Qwen3-MoE against ``transformers``: logits, taps, answers; and what is refused of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.loading.checkpoint import load_drafter, load_target, read_target_config
from support.checkpoints import FULL, SLIDING, drafter_config, write_drafter
from tests.engine.conftest import CPU, no_progress
from tests.engine.edited import copied, edit_config, refusal
from tests.engine.models.against_transformers import (
    assert_same,
    assert_same_answers,
    assert_same_far_out,
    their_answer,
)
from tests.engine.models.pre_norm import FAMILIES, LINEAR, LLAMA3, PLAIN, YARN, write_target
from tests.engine.small_decoders import prompt_ids

TAPS = [1, 3]

VARIANTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "llama 3.1": ("llama", LLAMA3, {}),
    "llama, tied": ("llama", PLAIN, {"tie_word_embeddings": True}),
    "llama, no groups": ("llama", LINEAR, {"num_key_value_heads": 4, "head_dim": 16}),
    "qwen3": ("qwen3", PLAIN, {}),
    "qwen3, tied and longer": ("qwen3", YARN, {"tie_word_embeddings": True}),
    "qwen3 moe": ("qwen3_moe", PLAIN, {}),
    "qwen3 moe, two experts of 8": ("qwen3_moe", YARN, {"num_experts": 8, "num_experts_per_tok": 2}),
}


@pytest.mark.parametrize(("family", "rope", "changes"), VARIANTS.values(), ids=VARIANTS)
def test_logits_and_taps_equal_those_of_transformers(
    family: str, rope: dict[str, Any], changes: dict[str, Any], tmp_path: Path
) -> None:
    reference = write_target(tmp_path, family, 3, rope, **changes)
    target = load_target(tmp_path, CPU, no_progress)
    assert_same(target, reference, torch.tensor(prompt_ids(40)), [1, 20, 16, 3], taps=(1, 2))


@pytest.mark.parametrize("rope", [LLAMA3, YARN, LINEAR, PLAIN], ids=lambda rope: rope["rope_type"])
def test_positions_far_out_turn_as_in_transformers(rope: dict[str, Any], tmp_path: Path) -> None:
    reference = write_target(tmp_path, "llama", 5, rope)
    target = load_target(tmp_path, CPU, no_progress)
    (layer,) = set(target.config.attention)
    module = reference.model.rotary_emb
    assert isinstance(target.frequencies, Tensor)
    torch.testing.assert_close(target.frequencies, module.inv_freq, atol=0, rtol=1e-6)
    assert layer.scale == pytest.approx(32**-0.5 * module.attention_scaling**2)
    assert_same_far_out(target, reference)


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_transformers_whatever_drafts(family: str, tmp_path: Path) -> None:
    reference = write_target(tmp_path / "target", family)
    write_drafter(tmp_path / "drafter", drafter_config([FULL, SLIDING], TAPS, 4, final_logit_softcapping=None))
    target, prompt = load_target(tmp_path / "target", CPU, no_progress), prompt_ids(30)
    drafter = load_drafter(tmp_path / "drafter", target, no_progress)
    assert_same_answers(target, drafter, prompt, their_answer(reference, prompt, 40), 16)


def test_experts_of_a_published_checkpoint_lie_by_themselves(tmp_path: Path) -> None:
    """Stacked, as other programs save them, they are the same model; of both only one may be there."""
    write_target(tmp_path, "qwen3_moe")
    weights = load_file(tmp_path / "model.safetensors")
    assert "model.layers.3.mlp.experts.15.up_proj.weight" in weights
    expected = load_target(tmp_path, CPU, no_progress).state_dict()
    stacked = {name: weight for name, weight in weights.items() if ".experts." not in name}
    for layer in range(4):
        path = f"model.layers.{layer}.mlp.experts"
        gate, up, down = (
            torch.stack([weights[f"{path}.{expert}.{part}_proj.weight"] for expert in range(16)])
            for part in ("gate", "up", "down")
        )
        stacked |= {f"{path}.gate_up_proj": torch.cat((gate, up), dim=1), f"{path}.down_proj": down}
    save_file(stacked, tmp_path / "model.safetensors")
    found = load_target(tmp_path, CPU, no_progress).state_dict()
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)
    transposed = {name: each.mT.contiguous() if "gate_up" in name else each for name, each in stacked.items()}
    save_file(transposed, tmp_path / "model.safetensors")
    assert "gate_up_proj" in refusal(lambda: load_target(tmp_path, CPU, no_progress))
    save_file({**weights, **stacked}, tmp_path / "model.safetensors")
    assert "twice" in refusal(lambda: load_target(tmp_path, CPU, no_progress))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_that_is_the_embedding_again_takes_no_memory(family: str, tmp_path: Path) -> None:
    reference = write_target(tmp_path, family, tie_word_embeddings=True)
    weights = load_file(tmp_path / "model.safetensors")
    save_file(
        {**weights, "lm_head.weight": weights["model.embed_tokens.weight"].clone()}, tmp_path / "model.safetensors"
    )
    for tied in (True, False):
        edit_config(tmp_path, tie_word_embeddings=tied)
        target = load_target(tmp_path, CPU, no_progress)
        assert target.head is target.embed_tokens.weight
        assert torch.equal(target.head, reference.model.embed_tokens.weight)


CONFIGS: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown rotation": ("llama", {"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, "'longrope'"),
    "rotation by its old name": ("llama", {"rope_parameters": None, "rope_scaling": {"type": "dynamic"}}, "'dynamic'"),
    "scaled by nothing": ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4}}, "factor"),
    "ramp the wrong way": (
        "llama",
        {"rope_parameters": {**LLAMA3, "low_freq_factor": 4.0, "high_freq_factor": 1.0}},
        "high_freq_factor",
    ),
    "half a rotation": ("llama", {"rope_parameters": {**PLAIN, "partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
    "biases": ("llama", {"attention_bias": True}, "attention_bias"),
    "biases of the MLP": ("llama", {"mlp_bias": True}, "mlp_bias"),
    "another activation": ("qwen3", {"hidden_act": "gelu"}, "'gelu'"),
    "windows": ("qwen3", {"use_sliding_window": True}, "use_sliding_window"),
    "heads that don't divide": ("qwen3", {"num_key_value_heads": 3}, "num_attention_heads"),
    "layers without experts": ("qwen3_moe", {"mlp_only_layers": [0]}, "mlp_only_layers"),
    "every second layer": ("qwen3_moe", {"decoder_sparse_step": 2}, "decoder_sparse_step"),
    "weights that don't add up": ("qwen3_moe", {"norm_topk_prob": False}, "norm_topk_prob"),
    "more chosen than there are": ("qwen3_moe", {"num_experts_per_tok": 17}, "num_experts_per_tok"),
    "another architecture": ("qwen3", {"model_type": "qwen9"}, "'qwen9'"),
}


@pytest.mark.parametrize(("family", "changes", "word"), CONFIGS.values(), ids=CONFIGS)
def test_configs_that_ask_for_something_else_are_refused(
    family: str, changes: dict[str, Any], word: str, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    folder = copied(checkpoints[family], tmp_path)
    edit_config(folder, **changes)
    assert word in refusal(lambda: read_target_config(folder))


def test_norms_of_heads_are_neither_missing_nor_superfluous(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    folder = copied(checkpoints["qwen3"], tmp_path)
    weights = load_file(folder / "model.safetensors")
    edit_config(folder, model_type="llama")
    assert "has, against its config, 8 tensors" in refusal(lambda: load_target(folder, CPU, no_progress))
    edit_config(folder, model_type="qwen3")
    save_file({name: each for name, each in weights.items() if "k_norm" not in name}, folder / "model.safetensors")
    message = refusal(lambda: load_target(folder, CPU, no_progress))
    assert "lacks 4 tensors" in message and "self_attn.k_norm.weight" in message


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {family: tmp_path_factory.mktemp(family) for family in FAMILIES}
    for family, folder in folders.items():
        write_target(folder, family)
    return folders
