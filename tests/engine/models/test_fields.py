"""What a ``config.json`` may say: every field is read, changes nothing, or is refused; and where it says a thing twice,
``transformers``' reading is the rule."""

from __future__ import annotations

import json
from dataclasses import fields as members
from pathlib import Path
from typing import Any

import pytest
from transformers import CONFIG_MAPPING, PreTrainedConfig

from engine.errors import WeightsFailure
from engine.files.json_fields import Fields
from engine.layer_config import read_rope, rope_fields
from engine.loading.layout import EMBEDDING, HEAD, PLACES, tensor_names
from engine.models.registry import FAMILIES, drafter_config_of, family_of, text_config
from engine.models.unread_fields import NEUTRAL
from support.checkpoints import DRAFT_WINDOW, FULL, SLIDING, drafter_config
from support.speculators import as_speculators

CONFIGS = sorted((Path(__file__).parents[3] / "engine" / "lab" / "bench" / "configs").glob("*.json"))
HARMLESS = {
    # How it was trained, stored or is to be run.
    "architectures", "attention_dropout", "auto_map", "dtype", "initializer_range", "mlp_dropout", "torch_dtype",
    "transformers_version", "use_cache", "output_router_logits", "router_aux_loss_coef", "router_jitter_noise",
    "pretraining_tp", "quantization_config", "layer_dropout", "return_dict", "max_window_layers", "mamba_ssm_dtype",
    "initial_context_length", "model_type",
    # Tokens that the tokenizer's files name, or that text doesn't need.
    "bos_token_id", "pad_token_id", "sep_token_id", "cls_token_id", "decoder_start_token_id",
    "audio_config", "audio_token_id", "boa_token_id", "boi_token_id", "boi_token_index", "eoa_token_id",
    "eoa_token_index", "eoi_token_id", "eoi_token_index", "image_token_id", "video_token_id", "vision_config",
    "vision_soft_tokens_per_image", "vision_end_token_id", "vision_start_token_id", "language_model_only",
    # Of layers that another field says are not there, or that the published values leave as they are.
    "hidden_size_per_layer_input", "num_kv_shared_layers", "vocab_size_per_layer_input", "moe_layer_freq",
    "full_attention_interval", "intermediate_size", "num_centroids", "centroid_intermediate_top_k",
    "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "num_nextn_predict_layers",
}  # fmt: skip
"""Fields of published configs that nothing here reads and that change nothing in what text a model writes."""
OF_TARGETS = {"eos_token_id", "max_position_embeddings", "tie_word_embeddings", "use_sliding_window"}
"""Fields that drafters' configs repeat of their targets'; their layers' kinds say which have a window."""


WHERE_ANOTHER_SAYS_SO = {
    "rope_parameters", "sliding_window", "num_experts", "top_k_experts", "moe_intermediate_size",
    "attention_bias", "final_logit_softcapping",
}  # fmt: skip
"""Fields of ``transformers``' configs that are read, or refused by the tensors there are, where another says that they
matter: what stands in no published config and no reader asks for is new."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    names: set[str] = set()

    def note(method: str) -> None:
        real = getattr(Fields, method)

        def noted(self: Fields, name: str, *rest: Any) -> Any:
            names.add(name)
            return real(self, name, *rest)

        monkeypatch.setattr(Fields, method, noted)

    for method in ("raw", "_get", "__contains__", "given"):
        note(method)
    return names


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_field_of_a_published_config_is_read_or_changes_nothing(path: Path, asked: set[str]) -> None:
    config = json.loads(path.read_text())
    drafts = any(part in path.stem for part in ("DFlash", "assistant"))
    if drafts:
        drafter_config_of(config)
    else:
        family_of(config).read_config(config, None)
    kind = "qwen3" if "DFlash" in path.stem else text_config(config)["model_type"]
    said = text_config(config) | config.get("dflash_config", {}) | (config if drafts else {})
    theirs, of_any = ({field.name for field in members(each)} for each in (CONFIG_MAPPING[kind], PreTrainedConfig))
    unread = (
        {name for name, value in said.items() if value is not None}.union(theirs - of_any - WHERE_ANOTHER_SAYS_SO)
        - asked
        - HARMLESS
        - (OF_TARGETS if drafts else set())
    )
    assert not unread, f"{path.name}: read these, refuse them in unread_fields.py, or say that they change nothing"


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_would_change_the_arithmetic_is_refused_by_name(name: str) -> None:
    for path in (CONFIGS[0], next(path for path in CONFIGS if path.stem == "Qwen3-8B")):
        config = json.loads(path.read_text())
        read = drafter_config_of if "DFlash" in path.stem else family_of
        for value in (None, *NEUTRAL[name]):
            read({**config, name: value})
        with pytest.raises(WeightsFailure, match=name):
            read({**config, name: "something else"})


TURNS = {"rope_type": "proportional", "rope_theta": 1e6, "factor": 2.0}


@pytest.mark.parametrize(
    ("stem", "changes", "named"),
    [
        ("Qwen3-8B", {"is_causal": False}, "is_causal"),
        ("Qwen3-8B", {"layer_types": [SLIDING] * 36}, "layer_types"),
        ("Qwen3-8B", {"rope_scaling": {"rope_theta": 1e6, FULL: {"rope_theta": 5e5}}}, "says twice"),
        ("gemma-4-31B-it", {"rope_parameters": {FULL: TURNS, SLIDING: TURNS}}, "factor"),
        ("gpt-oss-20b", {"rope_scaling": None}, "rope_parameters"),
        ("gpt-oss-20b", {"rope_scaling": {FULL: {"rope_theta": 1e6}, SLIDING: {"rope_theta": 1e4}}}, "differently"),
        ("gemma-4-31B-it", {"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1e4}}, "yarn"),
    ],
)
def test_what_a_family_would_compute_otherwise_is_refused_by_name(stem: str, changes: Any, named: str) -> None:
    config = text_config(json.loads(next(path for path in CONFIGS if path.stem == stem).read_text()))
    with pytest.raises(WeightsFailure, match=named):
        changed = {**config, **changes}
        family_of(changed).read_config(changed, None)


def test_without_windows_a_sliding_layer_has_none_as_in_transformers() -> None:
    said = drafter_config([SLIDING, FULL], [0, 1], 2)
    for config in (said, as_speculators(said)):
        layers = config.get("transformer_layer_config", config)
        assert [layer.window for layer in drafter_config_of(config).layers] == [DRAFT_WINDOW, None]
        layers["use_sliding_window"] = False
        assert {(layer.kind, layer.window, layer.causal) for layer in drafter_config_of(config).layers} == {
            (FULL, None, False)
        }


LINEAR = {"rope_type": "linear", "factor": 2.0}


@pytest.mark.parametrize(
    "said",
    [
        {"rope_theta": 5e5},
        {"rope_theta": 1e4, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
        {"rope_theta": 5e5, "rope_parameters": {"rope_type": "default"}},
        {"rope_theta": 5e5, "rope_parameters": LINEAR},
        {"rope_theta": 1e4, "rope_scaling": {**LINEAR, "rope_theta": 5e5}},
        {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4.0}, "rope_parameters": {"rope_theta": 1e4}},
        {"rope_theta": 5e5, "rope_scaling": {}, "rope_parameters": LINEAR},
        {"rope_theta": 5e5, "rope_scaling": None, "rope_parameters": {**LINEAR, "rope_theta": None}},
        {"rope_parameters": {**LINEAR, "rope_theta": 5e5}, "rope_scaling": LINEAR, "rope_theta": 2e5},
    ],
)
def test_a_frequency_that_stands_twice_is_read_as_transformers_does(said: dict[str, Any]) -> None:
    from transformers import LlamaConfig

    theirs = LlamaConfig(**json.loads(json.dumps(said))).rope_parameters
    ours, _ = read_rope(Fields(said, "config.json"), 64)
    kind = "default" if ours.scaling is None else ours.scaling.kind
    factor = None if ours.scaling is None else ours.scaling.factor
    if theirs["rope_theta"] is not None:
        assert ours.theta == theirs["rope_theta"]
    assert (kind, factor) == (theirs["rope_type"], theirs.get("factor"))


def test_layers_of_two_kinds_have_frequencies_of_their_own() -> None:
    said = {"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}}
    fields = Fields(said, "config.json")
    thetas = [read_rope(fields, 64, kind=kind)[0].theta for kind in ("full_attention", "sliding_attention")]
    assert thetas == [1e6, 1e4]
    with pytest.raises(WeightsFailure, match="lacks full_attention"):
        rope_fields(Fields({"rope_parameters": {"sliding_attention": {}}}, "config.json"))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("begin", PLACES)
def test_a_text_model_is_found_wherever_it_was_saved(family: Any, begin: str) -> None:
    """Alone, inside of a model for pictures, bare, or behind a wrapper's name."""
    names = tensor_names(family, {begin + EMBEDDING: None})  # type: ignore[dict-item]
    assert names(EMBEDDING) == begin + EMBEDDING
    assert names("layers.3.input_layernorm.weight") == f"{begin}layers.3.input_layernorm.weight"
    if family.tensor_name(HEAD) == HEAD:
        assert names(HEAD) == PLACES[begin] + HEAD
