"""The shipped pair: it has the features that it is there to exercise, and the report describes these very files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine.kv_cache.cache import Cache
from engine.lab.demo.model.files import PAIR, TARGET_PREFIX, load_drafter, load_target
from engine.lab.demo.model.tokenizer import load_tokenizer
from engine.lab.demo.report import judge
from engine.lab.demo.texts.conversation import TextTurn, TrainingText, encode_prompt
from engine.lab.training.generation import Sampler, generate, speculate
from engine.lab.training.measures import speculation

CPU = torch.device("cpu")
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
    target, tokenizer = load_target(PAIR, CPU), load_tokenizer(PAIR / "target")
    for question in QUESTIONS:
        ids = torch.tensor([encode_prompt(tokenizer, TrainingText((TextTurn(question, ""),)))])
        with torch.no_grad():
            hidden = target(ids[0], 0, Cache(target.config.layers, 256, 256, torch.float32, CPU)).hidden
            expected = reference(input_ids=ids).logits
        torch.testing.assert_close(target.logits(hidden), expected[0], atol=1e-3, rtol=0)


def test_drafts_are_accepted_and_change_nothing() -> None:
    target, tokenizer = load_target(PAIR, CPU), load_tokenizer(PAIR / "target")
    drafter = load_drafter(PAIR, target)
    prompts = [encode_prompt(tokenizer, TrainingText((TextTurn(question, ""),))) for question in QUESTIONS[1:3]]
    plain = generate(target, prompts, 200, Sampler(0, 0, CPU))
    fast = speculate(target, drafter, prompts, 200, Sampler(0, 0, CPU), 16)
    assert [answer.ids for answer in plain] == [answer.ids for answer in fast]
    assert all(answer.ended for answer in plain)
    assert "85" in tokenizer.decode(plain[0].ids)
    assert speculation(fast, 16).tau > 3


def test_the_report_is_judged_from_its_own_figures() -> None:
    report = json.loads((PAIR / "report.json").read_text())
    recorded = [(entry["name"], entry["value"], entry["met"]) for entry in report["criteria"]]
    assert recorded == [(criterion.name, criterion.value, criterion.met) for criterion in judge(report["figures"])]
    for name, size in report["figures"]["bytes"].items():
        assert (PAIR / Path(name)).stat().st_size == size


def test_everything_fits() -> None:
    sizes = [path.stat().st_size for path in PAIR.rglob("*") if path.is_file()]
    assert sum(sizes) <= 22_000_000
