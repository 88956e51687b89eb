"""The shipped pair: it has the features that it is there to exercise, and the report describes these very files."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

from engine.commands import Message
from engine.hub.pairs import BUNDLED_PAIR as PAIR
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_target
from engine.tokenization.tokenizer import ChatTokenizer
from tests.engine.conftest import CPU, no_progress

TARGET_PREFIX = "model.language_model."
QUESTIONS = ("Write a quicksort in Python", "what is 47 + 38?", "hello", "what does the drafter do?")


def test_target_has_the_features_of_a_real_one() -> None:
    tensors = load_file(PAIR / "target" / "model.safetensors")
    config = json.loads((PAIR / "target" / "config.json").read_text())["text_config"]
    assert all(name.startswith(TARGET_PREFIX) and tensor.dtype == torch.bfloat16 for name, tensor in tensors.items())
    assert "lm_head.weight" not in tensors
    assert config["final_logit_softcapping"] == 30.0
    for layer, kind in enumerate(config["layer_types"]):
        prefix = f"{TARGET_PREFIX}layers.{layer}."
        full = kind == "full_attention"
        assert (f"{prefix}self_attn.v_proj.weight" in tensors) is not full
        assert tensors[f"{prefix}self_attn.q_norm.weight"].shape == ((128,) if full else (64,))
        assert tensors[f"{prefix}layer_scalar"].item() != 1
        assert (tensors[f"{prefix}router.per_expert_scale"] != 1).any()


def test_transformers_loads_it_whole_and_agrees() -> None:
    transformers = pytest.importorskip("transformers")
    reference, info = transformers.Gemma4ForConditionalGeneration.from_pretrained(
        PAIR / "target", dtype=torch.float32, output_loading_info=True
    )
    assert not info["unexpected_keys"] and not info["mismatched_keys"]
    assert not set(info["missing_keys"]) - {"lm_head.weight"}  # tied to the embedding
    target, tokenizer = load_target(PAIR / "target", CPU, no_progress), ChatTokenizer(PAIR / "target")
    for question in QUESTIONS:
        ids = torch.tensor([tokenizer.prompt([Message("user", question)], thinking=False).ids])
        with torch.no_grad():
            hidden = target(ids[0], 0, Cache(target.config.layers, 256, 256, torch.float32, CPU)).hidden
            expected = reference(input_ids=ids).logits
        torch.testing.assert_close(target.logits(hidden), expected[0], atol=1e-3, rtol=0)


def test_the_report_is_about_these_files() -> None:
    report = json.loads((PAIR / "report.json").read_text())
    assert {name: (PAIR / name).stat().st_size for name in report["figures"]["bytes"]} == report["figures"]["bytes"]


def test_everything_fits() -> None:
    sizes = [path.stat().st_size for path in PAIR.rglob("*") if path.is_file()]
    assert sum(sizes) <= 22_000_000
