"""The published configs, read into the values they are known to have."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from engine.errors import WeightsFailure
from engine.layer_config import MoeConfig, RopeConfig
from engine.models.dflash.config import DFlashConfig
from engine.models.gemma4.config import Gemma4Config
from support.checkpoints import FULL, SLIDING, target_config
from tests.engine.published import published

# --- targets. name: layers, hidden, dense, query heads, key heads of sliding and of full layers

TARGETS = {
    "gemma-4-26B-A4B-it": (30, 2816, 2112, 16, 8, 2),
    "gemma-4-31B-it": (60, 5376, 21504, 32, 16, 4),
    "gemma-4-12B-it": (48, 3840, 15360, 16, 8, 1),
}


@pytest.mark.parametrize("name", TARGETS)
def test_targets(name: str) -> None:
    depth, hidden, dense, heads, sliding_kv, full_kv = TARGETS[name]
    config = Gemma4Config.from_json(published(name))
    assert (len(config.layers), config.hidden_size, config.intermediate_size) == (depth, hidden, dense)
    assert (config.vocab_size, config.max_context) == (262144, 262144)
    assert (config.logit_softcap, config.rms_norm_eps) == (30.0, 1e-6)
    assert {1, 106} <= set(config.stop_token_ids)
    assert config.moe == (MoeConfig(128, 8, 704) if "A4B" in name else None)
    for index, layer in enumerate(config.layers):
        assert (layer.num_heads, layer.scale, layer.causal) == (heads, 1.0, True)
        if index % 6 == 5:
            assert (layer.kind, layer.num_kv_heads, layer.head_dim, layer.window) == (FULL, full_kv, 512, None)
            assert layer.rope == RopeConfig(1e6, 512, 0.25) and layer.value_is_key
        else:
            assert (layer.kind, layer.num_kv_heads, layer.head_dim, layer.window) == (SLIDING, sliding_kv, 256, 1024)
            assert layer.rope == RopeConfig(1e4, 256) and not layer.value_is_key


def test_stop_tokens_of_the_generation_config_win() -> None:
    config = published("gemma-4-26B-A4B-it")
    assert Gemma4Config.from_json(config).stop_token_ids == (1, 106, 50)
    assert Gemma4Config.from_json(config, {"eos_token_id": [1, 106]}).stop_token_ids == (1, 106)
    assert Gemma4Config.from_json(config, {"eos_token_id": 7}).stop_token_ids == (7,)
    assert Gemma4Config.from_json(config, {"temperature": 1.0}).stop_token_ids == (1, 106, 50)
    assert Gemma4Config.from_json({**config, "eos_token_id": None}).stop_token_ids == ()


def test_configs_saved_again_by_transformers_read_the_same() -> None:
    """It moves the two ``global_*`` fields into overrides per layer."""
    saved = target_config([SLIDING, FULL, SLIDING, FULL], moe=True).to_dict()
    assert "per_layer_config" in saved["text_config"] and "global_head_dim" not in saved["text_config"]
    plain = json.loads(json.dumps(saved))
    del plain["text_config"]["per_layer_config"]
    plain["text_config"] |= {"global_head_dim": 32, "num_global_key_value_heads": 1}
    assert asdict(Gemma4Config.from_json(saved)) == asdict(Gemma4Config.from_json(plain))
    assert Gemma4Config.from_json(saved).layers[1].head_dim == 32


@pytest.mark.parametrize("name", ["gemma-4-E2B-it", "gemma-4-E4B-it"])
def test_per_layer_embeddings_are_refused(name: str) -> None:
    with pytest.raises(WeightsFailure, match="per-layer embeddings") as caught:
        Gemma4Config.from_json(published(name))
    assert "26B" in caught.value.hint


# --- drafters. name: hidden, MLP, query heads, tapped layers, target's depth

DRAFTERS = {
    "gemma-4-26B-A4B-it-DFlash": (2816, 5632, 32, (1, 6, 11, 17, 22, 27), 30),
    "gemma-4-31B-it-DFlash": (5376, 10752, 64, (1, 12, 23, 35, 46, 57), 60),
    "gemma4-12B-it-DFlash": (3840, 7680, 32, (1, 10, 19, 27, 36, 45), 48),
}


@pytest.mark.parametrize("name", DRAFTERS)
def test_drafters(name: str) -> None:
    hidden, dense, heads, taps, depth = DRAFTERS[name]
    config = DFlashConfig.from_json(published(name))
    assert (config.hidden_size, config.intermediate_size, config.rms_norm_eps) == (hidden, dense, 1e-6)
    assert (config.block_size, config.mask_token_id) == (16, 4)
    assert (config.target_layer_ids, config.num_target_layers) == (taps, depth)
    assert (config.embedding_scale, config.logit_softcap) == (None, 30.0)
    assert [layer.kind for layer in config.layers] == [SLIDING] * 4 + [FULL]
    for layer in config.layers:
        assert (layer.num_heads, layer.num_kv_heads, layer.head_dim) == (heads, 8, 128)
        assert layer.scale == 128**-0.5 and layer.rope == RopeConfig(1e6, 128)
        sliding = layer.kind == SLIDING
        assert (layer.causal, layer.window) == ((True, 2048) if sliding else (False, None))


def test_a_drafter_without_layer_types_is_all_full() -> None:
    config = published("gemma-4-26B-A4B-it-DFlash")
    del config["layer_types"]
    layers = DFlashConfig.from_json(config).layers
    assert [(layer.kind, layer.causal, layer.window) for layer in layers] == [(FULL, False, None)] * 5
