"""The shipped pair: it has the features that it is there to exercise, and the report describes these very files."""

from __future__ import annotations

import json

import torch
from safetensors.torch import load_file

from engine.hub.pairs import BUNDLED_PAIR as PAIR

TARGET_PREFIX = "model.language_model."


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


def test_the_report_is_about_these_files() -> None:
    report = json.loads((PAIR / "report.json").read_text())
    assert {name: (PAIR / name).stat().st_size for name in report["figures"]["bytes"]} == report["figures"]["bytes"]


def test_everything_fits() -> None:
    sizes = [path.stat().st_size for path in PAIR.rglob("*") if path.is_file()]
    assert sum(sizes) <= 22_000_000
