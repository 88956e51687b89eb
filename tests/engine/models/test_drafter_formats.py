"""In which format a drafter comes is decided in one place: read to the same description, or refused by name."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import WeightsFailure
from engine.loading.checkpoint import load_drafter
from engine.models.dflash.config import DFlashConfig
from engine.models.dflash.speculators import LEFTOVERS
from engine.models.drafter_formats import OF_WHOLE_FILES, SLOTS, UNREAD, Unread, refuse_unread_drafter
from engine.models.registry import drafter_config_of
from support.checkpoints import FULL, drafter_config, dspine_config, second_config, write_drafter
from support.speculators import as_speculators
from tests.engine.conftest import TinyPair, no_progress


@pytest.mark.parametrize("second", [False, True], ids=["DFlash", "DFlash 2"])
def test_speculators_is_read_to_the_same_description(second: bool) -> None:
    """With raw rows of the embedding and no cap, whatever the target's."""
    theirs = second_config([0, 2], 3) if second else drafter_config(["sliding_attention", "full_attention"], [1, 2], 3)
    ours = drafter_config_of(as_speculators(theirs))
    same = drafter_config_of({**theirs, "num_target_layers": None, "final_logit_softcapping": None})
    assert isinstance(ours, DFlashConfig) and isinstance(same, DFlashConfig)
    assert replace(ours, leftovers=()) == replace(same, embedding_scale=1.0, leftovers=())
    assert ours.layers[0].causal is not second and (second or not ours.layers[1].causal)
    first = drafter_config_of(as_speculators(theirs, sample_from_anchor=True))
    assert first == replace(ours, first_slot=0, block_size=min(ours.block_size + 1, 16))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *(({"speculators_model_type": kind}, "speculators_model_type") for kind in ("novel", [], {}, 3)),
        *(({"draft_vocab_size": count}, "draft_vocab_size") for count in (15, 513)),
        ({"aux_hidden_state_layer_ids": [0, 2]}, "reads the target's embedding"),
        ({"mask_token_id": None}, "mask_token_id"),
        ({"draft_ffn_type": "MoE"}, "mixtures of experts"),
        ({"speculators_model_type": "mtp"}, "own MTP layers"),
        ({"speculators_model_type": None}, "lacks speculators_model_type"),
        ({"transformer_layer_config": {"vocab_size": 512}}, "lacks"),
    ],
)
def test_what_speculators_has_besides_is_refused_by_name(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(WeightsFailure) as refused:
        drafter_config_of(as_speculators(second_config([0, 2], 3), **changes))
    assert said in str(refused.value) and refused.value.hint


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *(({"dflash_config": {slot: not silent}}, "first row drafts") for slot, silent in SLOTS.items()),
        *(({slot: int(not silent)}, "first row drafts") for slot, silent in SLOTS.items()),
        ({"eagle_config": {"use_aux_hidden_state": False}}, "EAGLE-1"),
        ({"dspark_rank": 1}, "inside of a target"),
        ({"output_multiplier": 0.5}, "output_multiplier"),
        ({"target_hidden_size": 128}, "target_hidden_size"),
        ({"is_causal": False, "dflash_config": {"causal": True}}, "is_causal, causal"),
        ({"hidden_activation": "gelu_pytorch_tanh"}, "hidden_activation"),
        ({"architectures": "LiLiCorrDraftModel"}, "LiLiCorr"),
        ({"architectures": ["LiLiCorrDraftModel"] * 2}, "LiLiCorr"),
        ({"architectures": ["Novel"]}, "a 'Novel' model"),
        ({"architectures": [["Novel"]]}, "Novel"),
    ],
)
def test_other_formats_are_refused_in_a_sentence_that_says_what_they_are(changes: dict[str, Any], said: str) -> None:
    config = drafter_config(["full_attention"], [1], 3)
    inner = {**config["dflash_config"], **changes.get("dflash_config", {})}
    with pytest.raises(WeightsFailure) as refused:
        drafter_config_of({**config, **changes, "dflash_config": inner})
    assert said in str(refused.value) and refused.value.hint


@pytest.mark.parametrize("unread", UNREAD, ids=lambda each: each.name)
def test_what_is_not_read_is_known_wherever_a_layout_says_it(unread: Unread) -> None:
    """By its name in any spelling, by fields of its own, and by tensors where a config says something else."""
    ours, theirs = drafter_config([FULL], [1], 3), as_speculators(drafter_config([FULL], [1], 3))
    strokes = "-".join(unread.name)
    named: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (ours, {"architectures": [unread.name.title()]}),
        (ours, {"dflash_config": {"projector_type": strokes}}),
    ]
    named += [(ours | {"architectures": None}, named[1][1]), (theirs, {"speculators_model_type": strokes.upper()})]
    fields = [(config, {field: 1}) for field in unread.fields for config in (ours, theirs)]
    for config, changes in named + fields:
        inner = {**ours["dflash_config"], **changes.get("dflash_config", {})} if config is not theirs else {}
        with pytest.raises(WeightsFailure, match=re.escape(unread.what)):
            drafter_config_of({**config, **changes, "dflash_config": inner})
    for part in unread.tensors:
        with pytest.raises(WeightsFailure, match=re.escape(unread.what)):
            refuse_unread_drafter(["fc.weight", f"layers.0.{part}weight"])


def test_a_field_of_another_format_that_says_null_says_nothing() -> None:
    ours = drafter_config([FULL], [1], 3)
    empty = dict.fromkeys([*OF_WHOLE_FILES, *(field for unread in UNREAD for field in unread.fields)])
    assert drafter_config_of(ours | empty) == drafter_config_of(ours)


def test_a_section_that_a_converter_left_does_not_count() -> None:
    """Its taps count from another place."""
    theirs = as_speculators(drafter_config([FULL], [1, 2], 3))
    assert drafter_config_of({**theirs, "dflash_config": {"target_layer_ids": [2, 3]}}) == drafter_config_of(theirs)


@pytest.mark.parametrize("given", ["DSpineDraftModel", ["DSpineDraftModel"] * 2])
def test_an_architecture_may_be_a_word_or_repeated(given: Any) -> None:
    """Also in a config copied from another drafter's, whose section is empty."""
    config = {**dspine_config([FULL, FULL], [0, 1], 2), "architectures": given}
    del config["dspine_config"]
    read = drafter_config_of({**config, **config["dflash_config"], "dflash_config": None})
    assert isinstance(read, DFlashConfig) and read.method == "dspine" and read.block_size == 16


def test_the_same_drafts_come_of_both_layouts(dense_pair: TinyPair, tmp_path: Path) -> None:
    """Tensors have the same names; what training leaves beside them, and what is the target's, stays on disk."""
    target = dense_pair.target
    config = second_config([0, 2], 3, final_logit_softcapping=None, input_embedding_scale=1.0)
    write_drafter(tmp_path / "z-lab", config)
    write_drafter(tmp_path / "speculators", config)
    folder = tmp_path / "speculators"
    (folder / "config.json").write_text(json.dumps(as_speculators(config)))
    tensors = load_file(folder / "model.safetensors")
    leftovers = {name + "weight": torch.ones(3) for name in LEFTOVERS}
    repeated = {"embed_tokens.weight": target.embed_tokens.weight, "lm_head.weight": target.head}
    leftovers |= {name: table.detach().clone() for name, table in repeated.items()}
    save_file({**tensors, **leftovers}, folder / "model.safetensors")
    first, second = (load_drafter(tmp_path / name, target, no_progress) for name in ("z-lab", "speculators"))
    assert replace(first.config, leftovers=(), num_target_layers=None) == replace(second.config, leftovers=())  # type: ignore[type-var]
    names = {name for name, _ in first.named_parameters()}
    assert names == {name for name, _ in second.named_parameters()}, "the target's tables are not held twice"
    for name, weight in first.named_parameters():
        assert torch.equal(second.get_parameter(name), weight), name
